"""Compiled loops over arrays: bin codes, histograms, division of rows, scores, exact sums."""

from qbdt.trees.kernels.exact_sums import LIMBS, binned_sums, exact_sum, round_sums
from qbdt.trees.kernels.histogram import add_rows, add_systematics
from qbdt.trees.kernels.lanes import add_pair, add_pair_word, aligned_zeros

__all__ = [
    "LIMBS",
    "add_pair",
    "add_pair_word",
    "add_rows",
    "add_systematics",
    "aligned_zeros",
    "binned_sums",
    "exact_sum",
    "round_sums",
]
