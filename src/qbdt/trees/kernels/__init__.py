"""Front door of trees.kernels."""

from qbdt.trees.kernels.exact import LIMBS
from qbdt.trees.kernels.histogram import add_details, add_rows
from qbdt.trees.kernels.lanes import aligned_zeros

__all__ = ["LIMBS", "add_details", "add_rows", "aligned_zeros"]
