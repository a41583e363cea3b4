"""Every number of the paper's tables, and the names it uses for methods and sources."""

from __future__ import annotations

SOURCES = {
    "tes": "τ pT",
    "tauid": "τ ID",
    "met": "ETmiss",
    "leppt": "ℓ pT",
    "lepid": "ℓ ID",
    "phopt": "γ pT",
    "phoid": "γ ID",
}
"""Sources in the order in which the paper's cases add them, with the names it prints."""

CASES = {"I": 1, "II": 3, "III": 7}
"""Number of sources in each case."""

SIGNIFICANCE = {
    ("I", "GradBDT"): (0.89, 0.72),
    ("I", "QBDT0"): (0.90, 0.71),
    ("I", "QBDT1"): (0.87, 0.78),
    ("II", "GradBDT"): (0.89, 0.71),
    ("II", "QBDT0"): (0.90, 0.69),
    ("II", "QBDT3"): (0.89, 0.75),
    ("III", "GradBDT"): (0.89, 0.66),
    ("III", "QBDT0"): (0.90, 0.68),
    ("III", "QBDT7"): (0.91, 0.83),
}
"""Expected significance of the stat-only and the full fit (tab:ex1_sig, tab:ex3_sig, tab:ex7_sig)."""

SIGMA_THETA = {
    ("I", "GradBDT"): (0.38,),
    ("I", "QBDT0"): (0.39,),
    ("I", "QBDT1"): (0.37,),
    ("II", "GradBDT"): (0.53, 0.34, 0.87),
    ("II", "QBDT0"): (0.57, 0.35, 0.87),
    ("II", "QBDT3"): (0.61, 0.38, 0.80),
    ("III", "GradBDT"): (0.57, 0.48, 0.89, 0.91, 0.99, 0.85, 0.94),
    ("III", "QBDT0"): (0.59, 0.47, 0.88, 0.95, 0.99, 0.95, 0.93),
    ("III", "QBDT7"): (0.59, 0.50, 0.78, 0.91, 0.99, 0.86, 0.94),
}
"""Post-fit uncertainties of the nuisance parameters, in the order of `SOURCES`."""

DELTA_MU = {"I": (0.79, 0.56, 0.71), "II": (0.82, 0.71, 0.85), "III": (0.99, 0.49, 0.50)}
"""Δμ of GradBDT, Δμ of QBDTX and their ratio (tab:ex3_dmu)."""

CORRELATION = {"GradBDT": 0.57, "QBDT0": 0.59, "QBDT1": 0.43}
"""Correlation of the signal strength with θ(τ pT) in case I, as the text quotes it."""

SOURCE_SIGNIFICANCE = {
    ("tes", "GradBDT"): (1.20, 1.17, 1.16, 1.15),
    ("tes", "QBDT0"): (1.20, 1.16, 1.17, 1.15),
    ("tes", "QBDT1"): (1.09, 1.07, 1.26, 1.26),
    ("tes", "QBDT3"): (1.29, 1.26, 1.24, 1.23),
    ("tes", "QBDT7"): (1.24, 1.21, 1.39, 1.39),
    ("tauid", "GradBDT"): (1.23, 1.20, 1.31, 1.31),
    ("tauid", "QBDT0"): (1.29, 1.25, 1.35, 1.34),
    ("tauid", "QBDT3"): (1.26, 1.23, 1.33, 1.33),
    ("tauid", "QBDT7"): (1.31, 1.28, 1.36, 1.36),
    ("met", "GradBDT"): (1.42, 1.39, 1.33, 1.31),
    ("met", "QBDT0"): (1.50, 1.46, 1.42, 1.36),
    ("met", "QBDT3"): (1.41, 1.38, 1.40, 1.37),
    ("met", "QBDT7"): (1.45, 1.42, 1.48, 1.47),
    ("leppt", "GradBDT"): (1.40, 1.38, 1.27, 1.16),
    ("leppt", "QBDT0"): (1.49, 1.46, 1.44, 1.36),
    ("leppt", "QBDT7"): (1.48, 1.45, 1.49, 1.49),
    ("lepid", "GradBDT"): (1.46, 1.44, 1.43, 1.31),
    ("lepid", "QBDT0"): (1.51, 1.47, 1.46, 1.34),
    ("lepid", "QBDT7"): (1.52, 1.49, 1.48, 1.36),
    ("phopt", "GradBDT"): (1.40, 1.38, 1.31, 1.23),
    ("phopt", "QBDT0"): (1.50, 1.46, 1.44, 1.36),
    ("phopt", "QBDT7"): (1.47, 1.44, 1.49, 1.48),
    ("phoid", "GradBDT"): (1.40, 1.38, 1.32, 1.31),
    ("phoid", "QBDT0"): (1.44, 1.41, 1.36, 1.34),
    ("phoid", "QBDT7"): (1.46, 1.43, 1.38, 1.36),
}
"""Z_χ², Z_0, Z_Q(1) and Z_Q(∞) with one source (tab:ex123_Zs)."""

SIGMA_B: dict[tuple[str, str], tuple[float, float | None]] = {
    ("I", "GradBDT"): (220.11, None),
    ("I", "QBDT0"): (231.20, None),
    ("I", "QBDT1"): (218.77, None),
    ("II", "GradBDT"): (257.16, 470.94),
    ("II", "QBDT0"): (258.94, 490.37),
    ("II", "QBDT3"): (254.70, 528.96),
    ("III", "GradBDT"): (259.92, 704.53),
    ("III", "QBDT0"): (260.22, 698.41),
    ("III", "QBDT7"): (247.85, 716.10),
}
"""Uncertainty of the total background with correlations, and without (tab:ex123_sigmab), in events."""
