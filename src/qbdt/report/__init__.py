"""Reports of results.

In: a `Document` of sections with text, statements, tables and figures. Out: one HTML page that needs nothing else, the
same as Markdown, and all figures as PDF. Ready figures are in `qbdt.report.figures`, colours and sizes for others in
`qbdt.report.style`.
"""

from qbdt.report.document import (
    Block,
    Code,
    Document,
    Figure,
    Fold,
    Headline,
    Section,
    Statement,
    Text,
    Verdict,
    provenance_tables,
)
from qbdt.report.labels import Labels
from qbdt.report.page import PAGE, write_report

__all__ = [
    "PAGE",
    "Block",
    "Code",
    "Document",
    "Figure",
    "Fold",
    "Headline",
    "Labels",
    "Section",
    "Statement",
    "Text",
    "Verdict",
    "provenance_tables",
    "write_report",
]
