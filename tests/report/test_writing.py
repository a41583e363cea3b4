"""Pages: complete in themselves, escaped, the same every time; Markdown and PDF beside them."""

import base64
import csv
import io
import re

import pytest

from qbdt.errors import OutputError
from qbdt.report.document import Document, Figure, Section
from qbdt.report.page import write_report
from qbdt.tables import Table
from tests.report.pages import EVIL, small_document


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("report")
    write_report(small_document(), target)
    return target


def test_the_page_needs_nothing_else(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    outside = [url for url in re.findall(r'(?:src|href)="([^"]*)"', page) if not url.startswith(("data:", "#"))]
    assert outside == []
    assert "default-src 'none'" in page


def test_names_from_users_are_escaped(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert page.count("&lt;script&gt;alert") > 8
    notes = (folder / "report.md").read_text(encoding="utf-8")
    assert "<script>" not in notes
    assert not re.search(r"(?<!\\)<img", notes)


def test_figures_are_there_in_every_form(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    pictures = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]*)"', page)
    assert len(pictures) == 3
    for i, picture in enumerate(pictures):
        saved = (folder / "figures" / f"figure-{i}.svg").read_bytes()
        assert base64.b64decode(picture) == saved
        assert saved.startswith(b"<?xml")
        assert f"(figures/figure-{i}.svg)" in (folder / "report.md").read_text(encoding="utf-8")
    assert (folder / "figures.pdf").read_bytes().startswith(b"%PDF")


def test_numbers_behind_a_figure_are_a_link(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    link = re.search(r'download="figure-0.csv" href="data:text/csv;charset=utf-8;base64,([^"]*)"', page)
    assert link is not None
    rows = list(csv.reader(io.StringIO(base64.b64decode(link[1]).decode())))
    assert rows == [["x", EVIL], ["0", "0"], ["1", "1"], ["2", "2"]]


def test_the_same_document_gives_the_same_page(folder, tmp_path):
    write_report(small_document(), tmp_path)
    assert (tmp_path / "report.html").read_bytes() == (folder / "report.html").read_bytes()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        write_report(small_document(), tmp_path / "file" / "report")


def test_a_spreadsheet_takes_no_name_for_a_formula():
    figure = Figure("f", None, "", {"=1+1": ["@x", "-2", 3.5, "ttbar"]})
    assert figure.csv().splitlines() == ["'=1+1", "'@x", "'-2", "3.5", "ttbar"]


def test_sentences_in_tables_are_wrapped_and_numbers_are_not(tmp_path):
    long = "called lumi_2 in the fit: lumi means something else in a workspace"
    table = Table("Notes", ("what", "note"), (("source lumi", long), ("σ", "1.000 ± 0.238")))
    write_report(Document("Title", "", (), (Section("Notes", (table,)),)), tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f'<td class="sentence">{long}</td>' in page
    assert "<td>1.000 ± 0.238</td>" in page
