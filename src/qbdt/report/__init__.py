"""Front door of report."""

from qbdt.report.document import Block, Document, Figure, Fold, Headline, Section, Statement, Text, Verdict
from qbdt.report.page import PAGE, write_report
from qbdt.report.provenance import provenance_tables

__all__ = [
    "PAGE",
    "Block",
    "Document",
    "Figure",
    "Fold",
    "Headline",
    "Section",
    "Statement",
    "Text",
    "Verdict",
    "provenance_tables",
    "write_report",
]
