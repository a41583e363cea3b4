"""Compiled loops over arrays: bin codes, histograms, division of rows, scores, exact sums."""

from qbdt.trees.kernels.exact_sums import LIMBS, exact_sum, round_sums, sum_in_bins
from qbdt.trees.kernels.histogram import add_rows, add_systematics
from qbdt.trees.kernels.lanes import add_pair, add_pair_word, aligned_zeros
from qbdt.trees.kernels.node_division import divide_in_place

__all__ = [
    "LIMBS",
    "add_pair",
    "add_pair_word",
    "add_rows",
    "add_systematics",
    "aligned_zeros",
    "divide_in_place",
    "exact_sum",
    "round_sums",
    "sum_in_bins",
]
