"""What `make resources` judges, and that the table of its results on the page is within its bound."""

from pathlib import Path

from validation.resources import MOST, find_wrong

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"


def test_estimates_that_are_off_and_other_models_are_found():
    row = ("20,000", "paper", "430 MB", "350 MB", "1.22", "3", "2", "1.16", "3")
    assert find_wrong([row], [("1", "paper", "600MB", "400 MB", "600 MB", "3", "the same")]) == []
    for number in (4, 7):
        for ratio in ("1.51", "0.66"):
            assert find_wrong([(*row[:number], ratio, *row[number + 1 :])], []) == ["20,000 paper"]
    assert find_wrong([], [("1", "paper", "600MB", "400 MB", "600 MB", "3", "ANOTHER")]) == ["1 paper"]


def test_estimates_on_the_page_hold():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(
        i for i, line in enumerate(lines) if line.startswith("| background events | method | memory, estimated")
    )
    rows = [line.strip("|").split("|") for line in lines[start + 2 : lines.index("", start)]]
    assert len(rows) == 8
    assert all(1 / MOST < float(row[column]) < MOST for row in rows for column in (4, 7))
