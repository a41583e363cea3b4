"""Every page does what it says: its code is run, its commands exist, its pages are in the navigation."""

import json
import pkgutil
import re
from pathlib import Path

import pytest
import typer
import yaml
from docs._figures.benchmark_tables import RESULTS, find_row, read_tables
from docs._figures.comparison import CMS_RESULTS
from docs._figures.summary_table import summary_table

from qbdt.analysis.schema import Analysis
from qbdt.cli.app import app
from qbdt.studies.comparison import Comparison, make_comparison_tables, make_sentence
from tests.pages import blocks, run_page

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def with_code():
    return [page for page in PAGES if any(not block.skipped and block.language for block in blocks(page.read_text()))]


@pytest.mark.parametrize("page", with_code(), ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_the_page_runs(page, tmp_path):
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_that_a_page_mentions_exist(page):
    known = {"qbdt": {"--help", "--version", "--install-completion", "--show-completion"}}
    for name, command in _commands(typer.main.get_command(app), "qbdt"):
        known[name] = {option for p in command.params for option in (*p.opts, *p.secondary_opts)} | {"--help", "-h"}
    for typed in re.findall(r"qbdt [a-z][^`\n|]*", " ".join(b.code for b in blocks(page.read_text()))):
        words = typed.split()
        name = next((n for n in (" ".join(words[:3]), " ".join(words[:2])) if n in known), None)
        if name is None:
            continue
        unknown = {word for word in words if re.fullmatch(r"--[a-z-]+", word)} - known[name]
        assert not unknown, f"{typed}: no option {', '.join(unknown)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_yaml_of_the_page_has_keys_that_exist(page):
    for block in blocks(page.read_text()):
        if block.language == "yaml":
            content = yaml.safe_load(block.code)
            assert set(content) <= set(Analysis.model_fields), f"{page.name}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_and_files_that_a_page_mentions_exist(page):
    text = page.read_text()
    for name in set(re.findall(r"\bqbdt(?:\.[A-Za-z_]\w*)+", text)) - {"qbdt.schema.json"}:
        assert pkgutil.resolve_name(name), name
    for path in set(re.findall(r"\b(?:src/qbdt|tests|validation|benchmarks|examples)/[\w/.-]+\.(?:py|yaml)", text)):
        assert (ROOT / path).exists(), path


def test_summary_of_the_results_is_copied_from_their_tables():
    assert summary_table() in RESULTS.read_text(), "make figures writes it anew"


def find_rows_of_cms():
    """What the benchmark measured on CMS files with 20 optimised bins: the profiled method, and the best peer."""
    tables = read_tables()
    rows = next(rows for title, rows in tables.items() if title.startswith("P2: ") and "; optimised bins" in title)
    pairs = next(rows for title, rows in tables.items() if title.startswith("P2: qbdt profile −"))
    peer = find_row(pairs, binning="optimised", bins="20")["best peer"]
    return [find_row(rows, method=method, bins="20") for method in ("qbdt profile", peer)]


def read_words(page):
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_sentence_below_the_first_picture_is_copied_from_the_tables(page):
    ours, best = find_rows_of_cms()
    text = read_words(page)
    assert f"σ_μ with systematics is {ours['σ_μ full']}, and {best['σ_μ full']} with the best tuned peer" in text
    said = re.search(r"\(Δμ_sys\) is ([\d.]+) × that of the peer", text)
    assert said is not None
    assert float(said[1]) == pytest.approx(float(ours["Δμ_sys"]) / float(best["Δμ_sys"]), abs=0.002)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_ratios_at_all_sample_sizes_are_copied_from_the_tables(page):
    rows = [row for title, table in read_tables().items() if title.startswith("P5: σ_μ against ") for row in table]
    events = [int(row["background events"].replace(",", "")) for row in rows]
    assert (min(events), max(events)) == (7_480, 1_000_000)
    text = read_words(page)
    for sources, words in (("all sources", "with systematics"), ("no sources", "without")):
        ratios = [float(row["ratio"].partition(" ± ")[0]) for row in rows if row["sources"] == sources]
        assert f"{min(ratios):.2f} to {max(ratios):.3f} × {words}" in text


def test_numbers_of_the_paper_are_copied_from_the_tables():
    text = read_words("paper/paper.md")
    ours, best = (float(row["Δμ_sys"]) for row in find_rows_of_cms())
    assert f"is {ours / best:.2f} times that" in text
    assert f"({ours:.3f} against {best:.3f} with 20 optimised bins)" in text
    [inferno] = [rows for title, rows in read_tables().items() if title.startswith("P1: ")][:1]
    learnt, exact = (
        find_row(inferno, method=method, binning="optimised", bins="20")["B1"]
        for method in ("qbdt profile", "exact t* (true densities)")
    )
    assert f"({learnt} against {exact} events in its benchmark 1, 20 optimised bins)" in text


def test_the_comparison_on_cms_files_is_copied_from_its_results():
    """The table of the page is that behind its figure, and the profiled method adds at most half of the best peer."""
    found = Comparison.from_dict(json.loads(CMS_RESULTS.read_text(encoding="utf-8")))
    page = re.sub(r"[\s│]+", " ", (ROOT / "docs" / "compare.md").read_text(encoding="utf-8"))
    for row in make_comparison_tables(found)[0].rows:
        assert " ".join(row).strip() in page, f"make compare-cms: copy what it prints into docs/compare.md: {row}"
    assert make_sentence(found) in page
    assert found.mean("qbdt profile", "delta_mu") < 0.5 * found.mean(str(found.best_peer), "delta_mu")


def _commands(group, prefix):
    for name, command in group.commands.items():
        yield f"{prefix} {name}", command
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix} {name}")
