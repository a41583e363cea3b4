import pytest

from qbdt.results import Table


def test_markdown_escapes_cells():
    table = Table("t", ("a|b", "n"), (("x\ny", "1.5"), ("\\", "−2 %")))
    assert table.to_markdown().splitlines() == ["| a\\|b | n |", "| --- | ---: |", "| x y | 1.5 |", "| \\\\ | −2 % |"]


def test_rows_must_fit_the_header():
    with pytest.raises(ValueError, match="a row of 1 cells under 2 headings"):
        Table("t", ("a", "b"), (("x",),))


def test_numbers_are_aligned_to_the_right():
    assert str(Table("t", ("name", "n"), (("a", "1"), ("b", "100")))) == "t\nname    n\na       1\nb     100"
