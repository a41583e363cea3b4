"""Names of tables of scored events: no two are the same, whatever samples and sources are called."""

from qbdt import Dataset, Events, Sample, Systematic
from qbdt.analysis.score_tables import _name_samples
from qbdt.data import Role
from qbdt.data.readers import read_columns, write_tables
from qbdt.files import choose_file_names, choose_words


def test_tables_do_not_overwrite_each_other(tmp_path):
    def events(weight: float) -> Events:
        return Events({"x": [0.0]}, [weight])

    names = {"b": "background", "b__s_up": "signal", "../b": "background"}
    samples = [Sample(name, Role(role), events(i)) for i, (name, role) in enumerate(names.items())]
    dataset = Dataset(samples, [Systematic.shape("s", {"b": events(10), "b__s_up": events(20)})])
    tables = [(name, {"weight": found.weight}) for name, _, found in _name_samples(dataset)]
    assert [name for name, _ in tables] == ["b", "b__s_up", "%2E.%2Fb", "b__s_up~2", "b__s_up__s_up"]
    for target in (tmp_path / "a", tmp_path / "a.root"):
        assert write_tables(target, tables) == [name for name, _ in tables]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.root"]
    for name, columns in tables:
        assert read_columns(tmp_path / "a.root", ["weight"], name)["weight"] == columns["weight"]
        assert read_columns(tmp_path / "a" / f"{name}.parquet", ["weight"])["weight"] == columns["weight"]


def test_names_are_one_to_one():
    names = ["a", "A", "a~2", "a b", "a_b", "a/b", "", " ", "é", "e\N{COMBINING ACUTE ACCENT}", "x" * 400, "x" * 401]
    for choose in (choose_file_names, choose_words):
        chosen = choose([*names, *names])
        assert len({name.casefold() for name in chosen} if choose is choose_file_names else set(chosen)) == len(chosen)
        assert all(0 < len(name.encode()) < 200 for name in chosen)
        assert chosen[0] == "a"
