"""Models in the formats of other programs.

In: a model that scores, and a file name. Out: an `Export`: files of ONNX, XGBoost, TMVA or C++ that were read back and
compared with the model around every cut.
"""

from qbdt.models.export.exporter import FORMATS, Export, export_model

__all__ = ["FORMATS", "Export", "export_model"]
