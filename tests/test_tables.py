import io

import pytest
from rich.console import Console

from qbdt.tables import Table, render_html, show


def test_markdown_escapes_cells():
    table = Table("t", ("a|b", "n"), (("x\ny", "1.5"), ("\\", "−2 %")))
    assert table.to_markdown().splitlines() == ["| a\\|b | n |", "| --- | ---: |", "| x y | 1.5 |", "| \\\\ | −2 % |"]


def test_rows_must_fit_the_header():
    with pytest.raises(ValueError, match="a row of 1 cells under 2 headings"):
        Table("t", ("a", "b"), (("x",),))


def test_numbers_are_aligned_to_the_right():
    assert str(Table("t", ("name", "n"), (("a", "1"), ("b", "100")))) == "t\nname    n\na       1\nb     100"


def test_html_escapes_cells_and_aligns_numbers():
    table = Table("a & b", ("name", "n"), (("<x>", "1"),))
    left, right = 'style="text-align:left"', 'style="text-align:right"'
    assert table._repr_html_() == (
        '<table><caption style="text-align:left;caption-side:top;white-space:nowrap">a &amp; b</caption>'
        f"<thead><tr><th {left}>name</th><th {right}>n</th></tr></thead>"
        f"<tbody><tr><td {left}>&lt;x&gt;</td><td {right}>1</td></tr></tbody></table>"
    )


def test_a_notebook_shows_the_first_tables_and_folds_the_others():
    tables = [Table(title, ("n",), (("1",),)) for title in ("one", "two")]
    shown = render_html("answer", tables, unfolded=1)
    assert shown.startswith("<div><strong>answer</strong><table>")
    assert shown.count("<details>") == 1
    assert "<details><summary>two</summary>" in shown


def test_a_terminal_without_width_shows_tables():
    written = io.StringIO()
    show([Table("Sources", ("source", "size"), (("scale", "0.1"),))], Console(file=written, width=0))
    assert "scale" in written.getvalue()
    assert "0.1" in written.getvalue()


def test_a_table_that_is_too_wide_is_shown_in_pieces_that_fit():
    header = ("source", "kind", "process", *(f"number {i}" for i in range(10)))
    rows = tuple((f"source{i}", "shape", "background", *(f"{i}.{j}" for j in range(10))) for i in range(2))
    written = io.StringIO()
    console = Console(file=written, width=80)
    show([Table("Sources", header, rows)], console)
    lines = written.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("source1" in line and "background" in line for line in lines) == 3  # once in each piece
    assert sum(f"1.{j}" in " ".join(lines) for j in range(10)) == 10
    assert not any(line.strip().startswith("│") for line in lines)  # no cell is folded
