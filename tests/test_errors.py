import pytest

from qbdt import errors


def test_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(errors.EXTRAS, "no_such_package", "dask")
    with pytest.raises(errors.MissingDependencyError, match=r"qbdt run --dask needs .*: pip install 'qbdt\[dask\]'"):
        errors.require("no_such_package.inner", "qbdt run --dask")
    with pytest.raises(errors.MissingDependencyError, match="pip install other_package"):
        errors.require("other_package", "this")
