"""A small report with everything in it, and names that would break a page that does not escape them."""

import numpy as np

from qbdt.report.document import Document, Figure, Fold, Headline, Section, Statement, Text, Verdict
from qbdt.report.style import figure, styled
from qbdt.tables import Table

EVIL = '<script>alert("x")</script> & "quotes" | `code` <img src=x onerror=alert(1)>'


def drawing():
    with styled():
        drawn, axes = figure(4, 3)
        axes.plot([0, 1, 2], [1.0, 3.0, 2.0])
        axes.set_xlabel("x (GeV)")
    return drawn


def small_document():
    table = Table(f"Table {EVIL}", ("method", "Z", EVIL), (("b", "10.0", EVIL), ("a", "−2.5", "x"), ("c", "9.5", "y")))
    pictures = tuple(
        Figure(f"figure-{i}", drawing(), f"Caption {i} {EVIL}", {"x": [0, 1, 2], EVIL: np.arange(3).tolist()})
        for i in range(3)
    )
    sections = (
        Section("Result", (table, pictures[0])),
        Section("What holds", (Statement(EVIL, Verdict.HOLDS, "a"), Statement("b", Verdict.FAILS, EVIL), Text(EVIL))),
        Section("More", (Fold(f"Fold {EVIL}", pictures[1:]),)),
    )
    return Document(f"Report {EVIL}", EVIL, (Headline(EVIL, EVIL, EVIL),), sections)
