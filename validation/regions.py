"""A run with regions, checked by pyhf alone: σ of each strength, upper limits and yields from the written workspace.

    python -m validation.regions RUN

RUN is a folder of `qbdt run` whose analysis asks for `limits: asymptotic`. Nothing of qbdt's fit is used on pyhf's
side: its model, its minimiser with MINUIT, its asymptotic calculator. Uncertainties come from second derivatives of its
−ln L by differences: MINUIT's HESSE has those of yields right to 1 % only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyhf
from scipy.optimize import brentq

from qbdt.arrays import Floats
from qbdt.tables import Table, show

CODES = {"normsys": {"interpcode": "code4"}, "histosys": {"interpcode": "code4p"}}
"""Interpolation as on pyhf's command line."""

STEP = 0.005
"""Of differences, in standard deviations: shapes with an asymmetry are far from linear within a tenth of one."""


class PyhfFit:
    """Fit of one measurement of a workspace."""

    def __init__(self, workspace: Any, measurement: str) -> None:
        self.model = workspace.model(measurement_name=measurement, modifier_settings=CODES)
        self.data = workspace.data(self.model)
        found = np.asarray(pyhf.infer.mle.fit(self.data, self.model, return_uncertainties=True))
        self.values = found[:, 0]
        self.covariance = self._covariance(found[:, 1])
        self.errors = np.sqrt(np.diag(self.covariance))

    def _covariance(self, near: Floats) -> Floats:
        """Inverse of the second derivatives of −ln L, by differences over 0.5 % of the uncertainties."""
        free = np.flatnonzero(near > 0)

        def at(*moves: tuple[int, float]) -> float:
            point = self.values.copy()
            for index, sign in moves:
                point[index] += STEP * sign * near[index]
            return -float(self.model.logpdf(point, self.data)[0])

        matrix = np.zeros((len(free), len(free)))
        for a, i in enumerate(free):
            for b, j in enumerate(free[: a + 1]):
                corners = [s * t * at((i, s), (j, t)) for s in (1, -1) for t in (1, -1)]
                matrix[a, b] = matrix[b, a] = sum(corners) / (4 * STEP**2 * near[i] * near[j])
        covariance = np.zeros((len(near), len(near)))
        covariance[np.ix_(free, free)] = np.linalg.inv(matrix)
        return covariance

    @property
    def sigma(self) -> float:
        """Uncertainty of the strength of interest."""
        return float(self.errors[self.model.config.poi_index])

    def expected_limit(self, near: float) -> float:
        """Median upper limit at 95 %, asymptotic CLs, that the nominal background lets expect."""
        nominal = np.array(self.model.config.suggested_init())
        nominal[self.model.config.poi_index] = 0.0
        background = self.model.expected_data(nominal)

        def distance(mu: float) -> float:
            found = pyhf.infer.hypotest(mu, background, self.model, test_stat="qtilde", return_expected=True)
            return float(found[1]) - 0.05

        return float(brentq(distance, 0.5 * near, 1.5 * near, rtol=1e-5))

    def yields(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Events after the fit and their uncertainty, by channel and sample."""
        free = np.flatnonzero(self.errors > 0)
        nominal = self._by_sample(self.values)
        slopes = {key: np.zeros(len(self.values)) for key in nominal}
        for index in free:
            step = np.zeros(len(self.values))
            step[index] = self.errors[index]
            up, down = self._by_sample(self.values + step), self._by_sample(self.values - step)
            for key in nominal:
                slopes[key][index] = (up[key] - down[key]) / (2 * self.errors[index])
        return {key: (n, float(np.sqrt(slopes[key] @ self.covariance @ slopes[key]))) for key, n in nominal.items()}

    def _by_sample(self, values: Floats) -> dict[tuple[str, str], float]:
        config = self.model.config
        bins = np.asarray(self.model.main_model.expected_data(pyhf.tensorlib.astensor(values), return_by_sample=True))
        found = {}
        for channel in config.channels:
            inside = bins[:, config.channel_slices[channel]].sum(axis=1)
            found |= {(channel, sample): float(n) for sample, n in zip(config.samples, inside, strict=True)}
        return found


def compare(folder: Path) -> list[tuple[str, float, float]]:
    """Name, number of the run and number of pyhf, of everything that both have."""
    pyhf.set_backend("numpy", pyhf.optimize.minuit_optimizer(tolerance=1e-3))
    fit = json.loads((folder / "fit" / "fit.json").read_text(encoding="utf-8"))
    workspace = pyhf.Workspace(json.loads((folder / "fit" / "workspace.json").read_text(encoding="utf-8")))
    limits = {limit["strength"]: limit["expected"][2] for limit in fit["answers"]["limits"]}
    rows: list[tuple[str, float, float]] = []
    for measurement in workspace.measurement_names:
        found = PyhfFit(workspace, measurement)
        name = found.model.config.poi_name
        strengths = fit["expected"].get("strengths", {name: fit["expected"]})
        if not measurement.endswith("_limit"):
            rows.append((f"σ of {name}", strengths[name]["sigma_mu"], found.sigma))
        elif name in limits:
            rows.append((f"expected limit on {name}", limits[name], found.expected_limit(limits[name])))
    by_pyhf = found.yields()
    for row in fit["answers"]["yields"]["rows"]:
        key = row["region"], row["process"]
        if key in by_pyhf:
            rows.append((f"{key[1]} in {key[0]}", row["postfit"], by_pyhf[key][0]))
            rows.append((f"± {key[1]} in {key[0]}", row["postfit_error"], by_pyhf[key][1]))
    return rows


def main(folder: str) -> None:
    """Print the comparison."""
    rows = compare(Path(folder))
    cells = tuple((name, f"{ours:.6g}", f"{its:.6g}", f"{abs(ours / its - 1):.1e}") for name, ours, its in rows)
    show((Table("qbdt and pyhf", ("quantity", "qbdt", "pyhf", "difference"), cells),))
    largest = max(abs(ours / its - 1) for _, ours, its in rows)
    sys.stdout.write(f"largest relative difference: {largest:.1e}\n")
    if largest > 1e-3:
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
