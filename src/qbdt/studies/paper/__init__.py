"""The paper's study: in, its files or the bundled sample; out, tables and figures next to the paper's numbers.

`reproduce` runs or resumes the study, `make_document` and `make_main_table` show it, `make_statements` judges the
paper's claims.
"""

from qbdt.studies.paper.paper_methods import METHODS, get_method
from qbdt.studies.paper.paper_tables import make_main_table
from qbdt.studies.paper.statements import make_statements
from qbdt.studies.paper.study import StudyOptions, reproduce
from qbdt.studies.paper.study_page import make_document

__all__ = ["METHODS", "StudyOptions", "get_method", "make_document", "make_main_table", "make_statements", "reproduce"]
