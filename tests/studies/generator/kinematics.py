"""Phase-space points and parton densities for the generator's tests, independent of the code under test."""

import numpy as np

from qbdt.studies.generator.partons import FLAVOURS, PartonDensities


def three_body(rng: np.random.Generator, energy: float) -> list[np.ndarray]:
    """One point of massless three-body phase space at rest, by RAMBO: isotropic, then boosted and scaled."""
    loose = []
    for _ in range(3):
        cosine, azimuth = rng.uniform(-1, 1), rng.uniform(0, 2 * np.pi)
        sine = np.sqrt(1 - cosine**2)
        size = -np.log(rng.random() * rng.random())
        loose.append(size * np.array([1, sine * np.cos(azimuth), sine * np.sin(azimuth), cosine]))
    total = np.sum(loose, axis=0)
    mass = np.sqrt(total[0] ** 2 - total[1:] @ total[1:])
    b, gamma = -total[1:] / mass, total[0] / mass
    return [
        energy / mass * np.array([gamma * p[0] + b @ p[1:], *(p[1:] + b * p[0] + (b @ p[1:]) / (1 + gamma) * b)])
        for p in loose
    ]


def beams(energy: float) -> list[np.ndarray]:
    return [np.array([energy / 2, 0, 0, energy / 2]), np.array([energy / 2, 0, 0, -energy / 2])]


def toy_densities() -> PartonDensities:
    """Smooth parton densities of about the right shape, so that the sampling can be tested without Pythia."""
    log_x, log_q = np.linspace(np.log(2e-7), 0, 200), np.linspace(np.log(4.0), np.log(6500.0), 5)
    x = np.exp(log_x)
    columns = []
    for code in FLAVOURS:
        if code == 21:
            columns.append(2 * x**-0.3 * (1 - x) ** 5)
        elif code in (1, 2):
            columns.append(0.1 * x**-0.3 * (1 - x) ** 7 + code * x**0.7 * (1 - x) ** 3)
        else:
            columns.append(0.1 * x**-0.3 * (1 - x) ** 7)
    values = np.broadcast_to(np.stack(columns, axis=1), (5, 200, len(FLAVOURS)))
    return PartonDensities(log_x, log_q, np.ascontiguousarray(values))
