"""Tables and marks from records."""

import pytest

from qbdt.statistics import FittedSensitivity
from qbdt.studies.benchmark.benchmark_tables import make_physics_tables
from qbdt.studies.benchmark.criteria import check_criteria, find_best_peer
from qbdt.studies.benchmark.physics import IDLE, NO_SOURCES, NOISY, REAL
from qbdt.studies.benchmark.results import (
    ALL_SOURCES,
    BINNINGS,
    BINS,
    FitRecord,
    PhysicsResults,
    SyntheticRecord,
    TimeRecord,
)
from qbdt.studies.comparison.contestants import OURS


def fits(problem, contestant, z_full, sigma_full, setup=ALL_SOURCES, z_stat=1.0, sigma_stat=1.0):
    return [
        FitRecord(problem, setup, contestant, seed, binning, bins, FittedSensitivity(sigma_stat, sigma_full, z_stat, z))
        for seed, z in enumerate(z_full)
        for binning in BINNINGS
        for bins in BINS
    ]


@pytest.fixture
def bench():
    good = (1.24**0.5, 2.0**0.5)  # Δμ of nearly one half and of one
    records = [
        *fits("P2", "XGBoost", (0.5, 0.6), good[1]),
        *fits("P2", "LightGBM", (0.5, 0.5), 3.0),
        *fits("P2", OURS, (0.8, 0.8), good[0]),
        *fits("P3", "XGBoost", (1.0, 1.1), 1.2),
        *fits("P3", OURS, (1.02, 1.12), 1.2),
        *fits("P4", "XGBoost", (1.9,), 1.2),
        *fits("P4", OURS, (1.91,), 1.15),
        *fits("P4", "XGBoost", (1.9,), 1.0, NO_SOURCES),
        *fits("P4", OURS, (1.9,), 1.0, NO_SOURCES),
        *fits("P4", OURS, (1.9,), 1.1, IDLE, sigma_stat=1.1),
        *fits("P4", OURS, (1.9,), 1.0, f"trained with {REAL}, fitted with {REAL}"),
        *fits("P4", OURS, (1.9,), 1.01, f"trained with {NOISY}, fitted with {REAL}"),
    ]
    sigma = SyntheticRecord(OURS, 1, "optimised", 10, (15.2, 15.9, 15.9, 16.1, 17.2))
    times = [TimeRecord("weight", n, 1 + 0.1 * n) for n in (0, 10, 50)] + [
        TimeRecord("shape", n, 1 + n**2) for n in (0, 5, 10)
    ]
    times.append(TimeRecord("P1", 3, 70.0))
    titles = {"P2": "CMS", "P3": "paper", "P4": "simulated"}
    return PhysicsResults(tuple(records), (sigma,), tuple(times), titles)


def holds(bench, problem, text):
    found = [
        criterion.holds
        for criterion in check_criteria(bench)
        if criterion.problem == problem and text in criterion.claim
    ]
    assert found, text
    assert len(set(found)) == 1
    return found[0]


def test_the_best_peer_is_that_of_the_full_fit(bench):
    assert find_best_peer(bench, "P2", "optimised", 20) == "XGBoost"
    assert find_best_peer(bench, "P2", "optimised", 7) is None


def test_criteria(bench):
    assert holds(bench, "P2", "Δμ_sys")
    assert holds(bench, "P2", "Z full")
    assert holds(bench, "P2", "Z stat")
    assert holds(bench, "P3", "Z full above")
    assert not holds(bench, "P4", "Z full")
    assert holds(bench, "P4", NO_SOURCES)
    assert not holds(bench, "P4", IDLE)
    assert holds(bench, "P4", "25 noise sources")
    assert holds(bench, "P1", "B2")
    assert not holds(bench, "P1", "B3")
    assert not holds(bench, "P1", "CPU seconds")
    assert holds(bench, "times", "weight-type")
    assert not holds(bench, "times", "shape-type")


def test_a_gain_within_the_spread_is_no_gain(bench):
    unsteady = PhysicsResults(
        tuple(fits("P3", "XGBoost", (1.0, 1.1), 1.2) + fits("P3", OURS, (0.9, 1.25), 1.2)), titles={"P3": "paper"}
    )
    assert not holds(unsteady, "P3", "Z full above")


def test_nothing_is_claimed_without_ours():
    assert check_criteria(PhysicsResults(tuple(fits("P2", "XGBoost", (0.5,), 1.2)), titles={"P2": "CMS"})) == []


def test_tables_hold_every_contestant_and_say_what_holds(bench):
    text = "\n".join(str(table) for table in make_physics_tables(bench))
    for part in ("XGBoost", "LightGBM", OURS, "0.550 ± 0.071", "INFERNO, best of five", "NO"):
        assert part in text
    assert "paired" in text
    for table in make_physics_tables(bench):
        table.to_markdown()


def test_sizes_are_compared_with_the_best_peer_of_each():
    records = fits("P4/8", "XGBoost", (1.0, 1.1), 1.2) + fits("P4/8", OURS, (1.5, 1.6), 1.2)
    chosen = ({"problem": "P4/8", "contestant": "XGBoost", "seed": 1, "settings": [{"max_depth": 3}] * 5},)
    found = PhysicsResults(tuple(records), titles={"P4/8": "thin: 10 events"}, settings=chosen)
    text = "\n".join(str(table) for table in make_physics_tables(found))
    assert "P5: σ_μ against the number of simulated events" in text
    assert "max_depth 3" in text


def test_plain_values(bench):
    plain = bench.to_dict()
    assert plain["fits"][0]["result"]["delta_mu"] == pytest.approx(1.0)
    assert len(plain["fits"]) == len(bench.fits)
