"""The generator as a user runs it: determinism, resuming, cuts, yields, messages."""

import sys
from contextlib import contextmanager

import numpy as np
import pytest
import uproot

from qbdt.data.samples.bundled import tautaugamma
from qbdt.data.samples.objects import PROCESSES, read_folder
from qbdt.data.samples.objects.reconstruction import SELECTION
from qbdt.errors import ConfigError, DataError, MissingDependencyError
from qbdt.files.records import read_record
from qbdt.studies.generator.driver import BATCHES, GenerateSettings, generate_tautaugamma

SMALL = GenerateSettings(seed=3, tau_decays=150, points={"signal": 5_000, "background": 20_000}, pilot_points=50_000)
WANTED = 150


def test_without_pythia_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pythia8mc", None)
    with pytest.raises(MissingDependencyError, match=r"qbdt generate needs .* pip install 'qbdt\[generate\]'"):
        generate_tautaugamma(tmp_path / "x", 10, 10, SMALL)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"signal": 0}, "signal=0: must be at least 1"),
        ({"background": -5}, "background=-5: must be at least 1"),
        ({"workers": 0}, "workers=0: must be at least 1"),
    ],
)
def test_bad_numbers_are_named(tmp_path, arguments, message):
    with pytest.raises(DataError, match=message):
        generate_tautaugamma(tmp_path, **({"signal": 1, "background": 1, "settings": SMALL} | arguments))
    with pytest.raises(DataError, match="seed=-1: must be at least 0"):
        GenerateSettings(seed=-1)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    pytest.importorskip("pythia8mc")
    folder = tmp_path_factory.mktemp("generated")
    metadata = generate_tautaugamma(folder, WANTED, WANTED, SMALL, root=True)
    return folder, metadata


def checksums(metadata):
    return {name: entry["sha256"] for name, entry in metadata["processes"].items()}


def test_events_pass_the_selection_and_carry_the_yield(sample):
    folder, metadata = sample
    data = tautaugamma(folder)
    for name, expected in (("signal", 103.0), ("background", 29_000.0)):
        entry, events = metadata["processes"][name], data.sample(name).events
        assert events.n_rows == WANTED == entry["selected"]
        assert events.total == pytest.approx(entry["yield"])
        # Statistics of the batches, and of a library of only 150 decays, which acts like as many events.
        assert entry["yield"] == pytest.approx(expected, rel=5 / np.sqrt(WANTED))
        assert events.column("pt_lep").min() > SELECTION.lepton_pt
        assert events.column("pt_tau").min() > SELECTION.tau_pt
        assert events.column("pt_pho").min() > SELECTION.photon_pt
        assert entry["clipped_share"] < 5e-3
    mass = data.sample("signal").events.column("m_lephadpho")
    assert np.quantile(mass, 0.99) < 135, "the Higgs boson's mass bounds the visible one, up to resolution"
    assert metadata["settings"]["seed"] == 3
    assert set(metadata["versions"]) == {"qbdt", "pythia8mc", "numpy"}


def test_event_numbers_are_consecutive(sample):
    for _, objects, _ in read_folder(sample[0]):
        assert np.array_equal(objects.event_number, np.arange(len(objects)))


def test_two_workers_make_the_same_files(sample, tmp_path):
    assert checksums(generate_tautaugamma(tmp_path, WANTED, WANTED, SMALL, workers=2)) == checksums(sample[1])


def test_an_interrupted_run_is_continued_to_the_same_files(sample, tmp_path):
    stages = []

    @contextmanager
    def interrupting(description, total):
        def advance(done):
            stages.append(description)
            if stages.count("simulating background") == 2:
                raise KeyboardInterrupt

        yield advance

    with pytest.raises(KeyboardInterrupt):
        generate_tautaugamma(tmp_path, WANTED, WANTED, SMALL, progress=interrupting)
    assert len(list((tmp_path / BATCHES).glob("background-*.parquet"))) == 2
    other = GenerateSettings(seed=4, tau_decays=SMALL.tau_decays, points=SMALL.points)
    with pytest.raises(ConfigError, match="holds an unfinished sample with another pilot_points, seed"):
        generate_tautaugamma(tmp_path, WANTED, WANTED, other)
    resumed = []

    @contextmanager
    def watching(description, total):
        resumed.append(description)
        yield lambda done: None

    assert checksums(generate_tautaugamma(tmp_path, WANTED, WANTED, SMALL, progress=watching)) == checksums(sample[1])
    assert "decaying taus" not in resumed
    assert not (tmp_path / BATCHES).exists()


def test_a_finished_folder_is_left_alone(sample):
    folder, metadata = sample
    assert generate_tautaugamma(folder, WANTED, WANTED, SMALL) == metadata
    with pytest.raises(DataError, match="holds a finished sample with other numbers or settings"):
        generate_tautaugamma(folder, WANTED + 1, WANTED, SMALL)


def test_root_files_hold_what_the_dataset_holds(sample):
    folder, _ = sample
    data = tautaugamma(folder)
    for name in PROCESSES:
        with uproot.open(folder / f"{name}.root") as file:
            nominal, up = file["nominal"].arrays(library="np"), file["tes_up"].arrays(library="np")
        events, varied = data.sample(name).events, data.varied("tes", "up")[name]
        for feature in data.features:
            assert np.array_equal(nominal[feature], events.column(feature))
            assert np.array_equal(up[feature], varied.column(feature))
        assert np.array_equal(nominal["weight_phoid_down"], data.varied("phoid", "down")[name].weight)
        assert np.array_equal(up["event_number"], varied.identifier("event_number"))


def test_settings_are_written_for_people(sample):
    settings = read_record(sample[0] / "settings.json")
    assert settings == SMALL.to_dict()
