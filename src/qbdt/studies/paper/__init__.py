"""Front door of studies.paper."""

from qbdt.studies.paper.document import study_document
from qbdt.studies.paper.methods import METHODS, get_method
from qbdt.studies.paper.paper_tables import main_table
from qbdt.studies.paper.statements import statements
from qbdt.studies.paper.study import Options, reproduce

__all__ = ["METHODS", "Options", "get_method", "main_table", "reproduce", "statements", "study_document"]
