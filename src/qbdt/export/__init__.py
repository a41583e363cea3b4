"""Models in formats that other programs read: ONNX, XGBoost, TMVA, C++.

Flows in: a model of either method, single or cross-trained. Flows out: files that were read back and compared with the
model around every cut, and a statement of what the format cannot hold.
"""

from qbdt.export.exporting import FORMATS, export_model
from qbdt.export.results import Check, Export

__all__ = ["FORMATS", "Check", "Export", "export_model"]
