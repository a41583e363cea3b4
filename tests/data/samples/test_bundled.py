"""The sample inside the package."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from qbdt.data.samples.bundled import tautaugamma
from qbdt.data.samples.objects import read_metadata
from qbdt.files import digest_file


@pytest.fixture(scope="module")
def data():
    return tautaugamma()


def test_size_and_checksums_of_the_bundled_files():
    folder = Path(str(files("qbdt.data.samples"))) / "data" / "tautaugamma"
    metadata = read_metadata(folder)
    paths = [folder / entry["file"] for entry in metadata["processes"].values()]
    assert sum(path.stat().st_size for path in paths) < 5_000_000
    assert [digest_file(path) for path in paths] == [entry["sha256"] for entry in metadata["processes"].values()]


def test_events_and_yields(data):
    assert data.sample("background").events.n_rows == 60_000
    assert data.sample("signal").events.n_rows == 30_000
    # Leading order at 80 fb⁻¹; one per cent is four standard deviations of the simulation.
    assert data.total("background") == pytest.approx(BACKGROUND, rel=0.02)
    assert data.total("signal") == pytest.approx(SIGNAL, rel=0.03)
    assert data.require_usable() is data


BACKGROUND, SIGNAL = 29_300.0, 103.0


def test_folds_are_by_event_number(data):
    events = data.sample("background").events
    assert np.array_equal(data.folds.assign(events), events.identifier("event_number") % 5)
    halves = tautaugamma(k=2).folds
    assert halves is not None
    assert halves.k == 2


def test_shifts_of_the_background_yield(data):
    nominal = data.sample("background").events

    def change(source, direction):
        return data.varied(source, direction)["background"].total / nominal.total - 1

    # The recipe's numbers; migrating events are few, so the tolerance is three times the root of their number.
    for source, direction, expected in (("tes", "down", -0.029), ("leppt", "down", -0.002), ("phopt", "down", -0.004)):
        spread = 3 * np.sqrt(abs(expected) / nominal.n_rows)
        assert change(source, direction) == pytest.approx(expected, abs=spread + 0.0005)
        assert change(source, "up") > 0
    assert change("met", "up") == 0
    assert change("tauid", "up") == pytest.approx(0.05)
    assert 0.002 < change("lepid", "up") < 0.0021
    assert 0.018 < change("phoid", "up") < 0.02


def test_the_papers_missing_momentum_changes_only_what_it_should(data):
    paper = tautaugamma(paper_met=True)
    ours, theirs = data.sample("signal").events, paper.sample("signal").events
    for feature in data.features:
        assert np.array_equal(ours.column(feature), theirs.column(feature)) == ("met" not in feature)


def test_signal_is_a_mass_peak_below_the_higgs_boson(data):
    mass = data.sample("signal").events.column("m_lephadpho")
    assert 80 < np.median(mass) < 100
    assert (mass > 135).mean() < 0.003
