"""Eras: halves of the CMS files, as two eras with correlated sources, against the fit of the whole.

    python -m validation.eras [--data DIR] [--trees N]

Every second event of each file goes to one era. Trained and fitted together they must give Z and σ_μ of the whole to
1e-3; where only the normalisations are correlated the result is another. Exits with 1 where they differ.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qbdt.analysis import Analysis, read_analysis, run_analysis
from qbdt.data.readers import read_columns
from qbdt.tables import Table, show

EXAMPLE = Path(__file__).parents[1] / "examples" / "cms_htautau.yaml"
AGREEMENT = 1e-3
COLUMNS = (
    *("muon_pt", "muon_eta", "muon_phi", "muon_m", "muon_iso", "tau_pt", "tau_eta", "tau_phi", "tau_m", "tau_iso"),
    *(f"j{what}_{n}" for n in (1, 2) for what in ("pt", "eta", "phi", "btag")),
    *("MET_pt", "MET_phi", "weight"),
)


def write_halves(data: Path, folder: Path) -> None:
    """Write the events of every file as a whole and as two halves."""
    for path in sorted(data.glob("*_selected.root")):
        columns = read_columns(path, COLUMNS, "Events")
        row = np.arange(len(columns["weight"]))
        for era, chosen in (("first", row % 2 == 0), ("second", row % 2 == 1), ("whole", row >= 0)):
            (folder / era).mkdir(exist_ok=True)
            native = {name: values[chosen].astype(values.dtype.newbyteorder("=")) for name, values in columns.items()}
            pq.write_table(pa.table(native), folder / era / f"{path.stem}.parquet")


def place(analysis: Analysis, folder: str, trees: int, eras: list[str]) -> Analysis:
    """Return the analysis of the files in a folder, which may be that of each era."""
    samples = {
        name: sample.model_copy(update={"files": [f"{folder}/{Path(file).stem}.parquet" for file in sample.files]})
        for name, sample in analysis.samples.items()
    }
    training = analysis.training.model_copy(update={"n_trees": trees})
    plain = analysis.model_copy(update={"samples": samples, "training": training, "tree": None})
    return Analysis.model_validate({**plain.model_dump(exclude_unset=True), "eras": {era: {} for era in eras}})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/cms_htautau"))
    parser.add_argument("--trees", type=int, default=20)
    options = parser.parse_args()
    example, found = read_analysis(EXAMPLE), {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_halves(options.data, folder)
        for name, files, eras in (("whole", "whole", []), ("eras", "{era}", ["first", "second"])):
            analysis = place(example, files, options.trees, eras)
            run = run_analysis(analysis, folder, folder / f"run-{name}", figures=False)
            found[name] = [run.result["fit"]["expected"][key] for key in ("z", "sigma_mu")]
    differences = [abs(e / w - 1) for e, w in zip(found["eras"], found["whole"], strict=True)]
    rows = tuple((name, *(f"{value:.6f}" for value in values)) for name, values in found.items())
    rows += (("difference", *(f"{value:.1e}" for value in differences)),)
    show([Table("Two halves as correlated eras", ("events", "Z", "σ_μ"), rows)])
    sys.exit(int(max(differences) > AGREEMENT))


if __name__ == "__main__":
    main()
