"""Front door of models.export."""

from qbdt.models.export.exporting import FORMATS, export_model

__all__ = ["FORMATS", "export_model"]
