"""The formulas that everybody shares: expected significance, Fisher information, and the record of an expected result.

In: expected events per bin. Out: Q and σ_b² (`significance`), I* = 1/σ_μ² (`profiled_information`), `Sensitivity`.
"""

from qbdt.statistics.information import information_matrix, profiled_information
from qbdt.statistics.sensitivity import (
    Expectation,
    FittedSensitivity,
    Sensitivity,
    SourceExpectation,
    quadratic_difference,
)
from qbdt.statistics.significance import (
    TanhScan,
    background_variance,
    correlated_variance,
    has_significance,
    purity,
    purity_value,
    scan_tanh,
    significance,
    significance_value,
)

__all__ = [
    "Expectation",
    "FittedSensitivity",
    "Sensitivity",
    "SourceExpectation",
    "TanhScan",
    "background_variance",
    "correlated_variance",
    "has_significance",
    "information_matrix",
    "profiled_information",
    "purity",
    "purity_value",
    "quadratic_difference",
    "scan_tanh",
    "significance",
    "significance_value",
]
