"""The paper's study in one call: methods, published split, random halves, tables next to the paper's numbers."""

from qbdt.reproduce.study import Options, Study, reproduce

__all__ = ["Options", "Study", "reproduce"]
