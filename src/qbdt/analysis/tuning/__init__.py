"""Front door of analysis.tuning."""

from qbdt.analysis.tuning.search import tune
from qbdt.analysis.tuning.writing import write_tuning

__all__ = ["tune", "write_tuning"]
