"""CMS combine: a datacard and its shapes file, one bin of the card for each region.

Normalisations are `lnN`, everything else `shape` with up and down templates. MC statistics are `autoMCStats` for all
bins (threshold 0), where combine scales the signal with the background, which pyhf's form does not; Gaussian factors
per process and bin are `shape` sources, Poisson ones `autoMCStats` with a threshold that no bin passes. One Poisson
factor per bin becomes a Gaussian one, and a comment says so. A source that is a normalisation for one process and a
shape for another is written as a shape for both; one that is measured has a flat prior (`shapeU`) over ten of its
units. Free normalisations are `rateParam`. One signal strength is combine's `r`; several need a physics model, whose
command stands in a comment.
Names that combine does not take, or means something else by, are spelt in another way; comments of the card list them.
Each process has a folder of its own in the shapes file, so that no two histograms share a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.data import Role
from qbdt.files import choose_words, recreate_root
from qbdt.inference.mc_statistics import McModel
from qbdt.inference.measurement import Measurement
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet, make_histogram

RESERVED = ("data_obs", "r", "MH", "autoMCStats", "process", "rate", "bin")
"""Names that mean something else to combine: the data, the signal strength, the mass, words of the card."""

NOMINAL = "nominal"
"""Histogram of a process as it is, in its folder; beside it are SOURCEUp and SOURCEDown."""

RULE = "-" * 80

FLAT = 10
"""Units of a source of interest that combine's flat prior, from −1 to 1, stands for."""

AUTOMATIC: Mapping[str | None, str] = {"bin": "0", "bin_poisson": "0", "process_poisson": "1000000000 1"}
"""Thresholds of `autoMCStats`: effective events of a bin up to which each process has a Poisson factor of its own; then
whether the signal has, too."""

GAUSSIAN_IN_COMBINE = "# MC statistics: Gaussian here, since combine has no Poisson factor of all processes of a bin"


def write_datacard(measurement: Measurement, folder: Path | str, mc_model: McModel | None = "bin") -> Path:
    """Write `datacard.txt` and `shapes.root`.

    Parameters
    ----------
    measurement
        Regions and parameters.
    folder
        Where to write; made if it is not there.
    mc_model
        How MC statistics enter; None where they do not.

    Returns
    -------
    Path
        The card, for `combine -M Significance -t -1 --expectSignal 1 datacard.txt`.
    """
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    processes, sources = _spell(measurement.processes), _spell(measurement.sources)
    spelt = _rename(measurement, processes, sources)
    if mc_model == "process":
        spelt = _vary_bins(spelt)
    _write_shapes(spelt, root / "shapes.root")
    lines = [*_head(spelt), *_list_spellings("process", processes), *_list_spellings("source", sources)]
    lines += [*_rates(spelt), *_sources(spelt), *_factors(spelt), *_groups(spelt)]
    if mc_model == "bin_poisson":
        lines.append(GAUSSIAN_IN_COMBINE)
    if mc_model in AUTOMATIC:
        lines += [f"{region} autoMCStats {AUTOMATIC[mc_model]}" for region in spelt.regions]
    card = root / "datacard.txt"
    card.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return card


def _vary_bins(measurement: Measurement) -> Measurement:
    """Add a source for each bin of each process, which moves it by its MC error: combine has no other Gaussian ones."""
    names = dict(zip(measurement.cells, measurement.mc_stat_names, strict=True))
    regions = {}
    for region, templates in measurement.regions.items():
        processes = [_vary_process(process, names[region, process.name]) for process in templates.processes]
        sources = dict.fromkeys((*templates.sources, *(name for process in processes for name in process.shifts)))
        regions[region] = replace(templates, processes=tuple(processes), sources=tuple(sources))
    return measurement.map(regions)


def _vary_process(process: ProcessTemplates, name: str) -> ProcessTemplates:
    shifts = dict(process.shifts)
    for number in np.flatnonzero((process.nominal > 0) & (process.variance > 0)):
        change = np.zeros_like(process.nominal)
        change[number] = min(np.sqrt(process.variance[number]), process.nominal[number])
        shifts[f"{name}_bin{number + 1}"] = Shift(process.nominal + change, process.nominal - change)
    return replace(process, shifts=shifts)


def _spell(names: Sequence[str]) -> dict[str, str]:
    return dict(zip(names, choose_words(names, RESERVED), strict=True))


def _rename(measurement: Measurement, processes: Mapping[str, str], sources: Mapping[str, str]) -> Measurement:
    def spell(lists: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
        return {
            name: tuple(processes.get(one, sources.get(one, one)) for one in members) for name, members in lists.items()
        }

    return replace(
        measurement,
        regions={name: region.renamed(processes, sources) for name, region in measurement.regions.items()},
        strengths=spell(measurement.strengths),
        of_interest=measurement.spell_interest(sources),
        free={name: spell(measurement.factors)[name] for name in measurement.factors if name in measurement.free},
        fixed={sources.get(name, name): value for name, value in measurement.fixed.items()},
        bounds={sources.get(name, name): ends for name, ends in measurement.bounds.items()},
        groups=spell(measurement.groups),
        abcd={processes.get(name, name): regions for name, regions in measurement.abcd.items()},
    )


def _list_spellings(kind: str, words: Mapping[str, str]) -> Iterable[str]:
    """Comments that say what names became of, where they are not the same."""
    return [f"# {kind} {name!r} is called {word} here" for name, word in words.items() if name != word]


def _columns(measurement: Measurement) -> list[tuple[str, ProcessTemplates]]:
    """Region and process of each column of the card, signals first; processes without events in a region have none."""
    return [
        (name, process)
        for name, region in measurement.regions.items()
        for process in region.of_role(Role.SIGNAL) + region.of_role(Role.BACKGROUND)
        if process.nominal.sum() > 0
    ]


def _head(measurement: Measurement) -> Iterable[str]:
    yield f"imax {len(measurement.regions)}"
    yield f"jmax {len(measurement.processes) - 1}"
    yield "kmax *"
    yield RULE
    yield f"shapes * * shapes.root $CHANNEL/$PROCESS/{NOMINAL} $CHANNEL/$PROCESS/$SYSTEMATIC"
    yield "shapes data_obs * shapes.root $CHANNEL/data_obs"
    yield RULE


def _rates(measurement: Measurement) -> Iterable[str]:
    columns = _columns(measurement)
    order = measurement.of_role(Role.SIGNAL) + measurement.of_role(Role.BACKGROUND)
    n_signal = len(measurement.of_role(Role.SIGNAL))
    sums = [_counts(region).sum() for region in measurement.regions.values()]
    yield f"bin {' '.join(measurement.regions)}"
    yield f"observation {' '.join(f'{total:.10g}' for total in sums)}"
    yield RULE
    yield _line("bin", [region for region, _ in columns])
    yield _line("process", [process.name for _, process in columns])
    yield _line("process", [str(order.index(process.name) - n_signal + 1) for _, process in columns])
    yield _line("rate", [f"{process.nominal.sum():.10g}" for _, process in columns])
    yield RULE


def _sources(measurement: Measurement) -> Iterable[str]:
    for name in measurement.sources:
        acting = [process.shifts.get(name) for _, process in _columns(measurement)]
        if name in measurement.unconstrained:
            yield _line(f"{name} shapeU", ["-" if shift is None else str(FLAT) for shift in acting])
        elif _is_norm(measurement, name):
            cells = ["-" if s is None or s.factors is None else "{:.6g}/{:.6g}".format(*s.factors) for s in acting]
            yield _line(f"{name} lnN", cells)
        else:
            yield _line(f"{name} shape", ["-" if shift is None else "1" for shift in acting])


def _factors(measurement: Measurement) -> Iterable[str]:
    """Free normalisations, and comments on what combine is told on its command line."""
    places = [(name, "*", process) for name in measurement.free for process in measurement.factors[name]]
    for process, regions in measurement.abcd.items():
        places += [(name, region, process) for region in regions for name in measurement.factors_of(region, process)]
    for name, region, process in places:
        low, high = measurement.bounds.get(name, (0.0, 10.0))
        yield f"{name} rateParam {region} {process} {measurement.fixed.get(name, 1.0):g} [{low:g},{high:g}]"
    if len(measurement.strengths) > 1:
        maps = " ".join(
            f"--PO 'map=.*/{process}:{name}[1,-20,20]'"
            for name, processes in measurement.strengths.items()
            for process in processes
        )
        model = "HiggsAnalysis.CombinedLimit.PhysicsModel:multiSignalModel"
        yield f"# strengths: text2workspace.py datacard.txt -P {model} {maps}"
    if measurement.unconstrained:
        names = ",".join(measurement.unconstrained)
        yield f"# {names}: in units of {FLAT}; combine -M MultiDimFit --algo singles --redefineSignalPOIs {names}"
    if measurement.fixed:
        names = ",".join(measurement.fixed)
        values = ",".join(f"{name}={value:g}" for name, value in measurement.fixed.items())
        yield f"# fixed parameters: combine ... --setParameters {values} --freezeParameters {names}"


def _groups(measurement: Measurement) -> Iterable[str]:
    for group, members in zip(choose_words(measurement.groups), measurement.groups.values(), strict=True):
        yield f"{group} group = {' '.join(members)}"


def _is_norm(measurement: Measurement, name: str) -> bool:
    if name in measurement.unconstrained:  # combine has no flat prior for the form of a normalisation
        return False
    acting: list[Shift] = [p.shifts[name] for _, p in _columns(measurement) if name in p.shifts]
    return all(shift.factors is not None for shift in acting)


def _line(head: str, cells: Sequence[str]) -> str:
    return head.ljust(36) + " ".join(cell.ljust(16) for cell in cells).rstrip()


def _counts(region: TemplateSet) -> Any:
    return region.asimov if region.data is None else region.data


def _write_shapes(measurement: Measurement, path: Path) -> None:
    norms = {name for name in measurement.sources if _is_norm(measurement, name)}
    with recreate_root(path) as file:
        for channel, region in measurement.regions.items():
            counts = _counts(region)
            file[f"{channel}/data_obs"] = make_histogram(counts, np.maximum(counts, 0.0), region.edges)
            for process in region.processes:
                file[f"{channel}/{process.name}/{NOMINAL}"] = region.histogram(process.name)
                for name in process.shifts:
                    if name not in norms:
                        for suffix in ("Up", "Down"):
                            shifted = region.histogram(process.name, name, suffix.lower())
                            file[f"{channel}/{process.name}/{name}{suffix}"] = shifted
