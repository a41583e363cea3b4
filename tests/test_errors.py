import pytest

from qbdt import optional as _optional
from qbdt.errors import MissingDependencyError


def test_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(_optional.EXTRAS, "no_such_package", "dask")
    with pytest.raises(MissingDependencyError, match=r"qbdt run --dask needs .*: pip install 'qbdt\[dask\]'"):
        _optional.require("no_such_package.inner", "qbdt run --dask")
    with pytest.raises(MissingDependencyError, match="pip install other_package"):
        _optional.require("other_package", "this")
