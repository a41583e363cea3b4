"""Reports that people open: one self-contained page, notes in Markdown, figures as PDF."""

from qbdt.report.document import Document, Figure, Fold, Headline, Section, Statement, Text, Verdict
from qbdt.report.writing import render_markdown, write_report

__all__ = [
    "Document",
    "Figure",
    "Fold",
    "Headline",
    "Section",
    "Statement",
    "Text",
    "Verdict",
    "render_markdown",
    "write_report",
]
