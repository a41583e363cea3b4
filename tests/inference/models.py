"""Templates with known properties, for the tests of the fits."""

import numpy as np

from qbdt.data import Role
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet


def smooth_templates(n_bins=10, n_sources=3, seed=1, signal_shifts=False, norm=None, mc_events=0.5):
    """One signal, two backgrounds; each source moves the first background by a few per cent, smoothly and linearly.

    `norm` adds a normalisation of that size on the second background; `mc_events` is Σw² per expected event.
    """
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, n_bins)
    major, minor = 2000 * np.exp(-4 * x) + 30, 300 * np.exp(-2 * x)
    signal = 40 * np.exp(-4 * (1 - x))
    shifts, signal_effects = {}, {}
    for k in range(n_sources):
        relative = rng.normal(0, 0.05) * np.cos(3 * rng.random() * x + 6 * rng.random()) + rng.normal(0, 0.01)
        shifts[f"source{k}"] = Shift(major * (1 + relative), major * (1 - relative), mirrored=True)
        signal_effects[f"source{k}"] = Shift(signal * (1 + relative / 2), signal * (1 - relative / 2), mirrored=True)
    second = {}
    if norm is not None:
        second["norm"] = Shift(minor * (1 + norm), minor * (1 - norm), factors=(1 - norm, 1 + norm))
    processes = (
        ProcessTemplates("signal", Role.SIGNAL, signal, 0.1 * signal, signal_effects if signal_shifts else {}),
        ProcessTemplates("major", Role.BACKGROUND, major, mc_events * major, shifts),
        ProcessTemplates("minor", Role.BACKGROUND, minor, mc_events * minor, second),
    )
    return TemplateSet("score", np.linspace(0, 1, n_bins + 1), processes, (*shifts, *second))


def pyhf_errors(model, data, values, free=None):
    """Uncertainties from the second derivatives of pyhf's own likelihood by central differences.

    Those of all parameters, or of those whose numbers are given.

    MINUIT's HESSE, which pyhf quotes, is off by up to some per cent where shapes are asymmetric. Steps of 0.001 leave
    errors of about 1e-5.
    """
    step = 1e-3
    free = range(len(values)) if free is None else free
    n = len(free)

    def at(*moves):
        point = np.array(values, dtype=float)
        for i, sign in moves:
            point[free[i]] += sign * step
        return -float(np.asarray(model.logpdf(point, data)).item())

    matrix = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            corners = [a * b * at((i, a), (j, b)) for a in (1, -1) for b in (1, -1)]
            matrix[i, j] = matrix[j, i] = sum(corners) / (4 * step**2)
    return np.sqrt(np.diag(np.linalg.inv(matrix)))
