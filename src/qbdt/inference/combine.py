"""CMS combine: a datacard and its shapes file.

Normalisations are `lnN`, everything else `shape` with up and down templates; MC statistics are `autoMCStats` for all
bins (threshold 0); combine scales the signal with the background there, which pyhf's form does not. A source that is a
normalisation for one process and a shape for another is written as a shape for both. Names that combine does not take,
or means something else by, are spelt in another way; comments of the card list them. Each process has a folder of its
own in the shapes file, so that no two histograms share a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from qbdt.data import Role
from qbdt.files import choose_words
from qbdt.inference.templates.template_set import ProcessTemplates, TemplateSet, make_histogram

__all__ = ["write_datacard"]

RESERVED = ("data_obs", "r", "MH", "autoMCStats", "process", "rate", "bin")
"""Names that mean something else to combine: the data, the signal strength, the mass, words of the card."""

NOMINAL = "nominal"
"""Histogram of a process as it is, in its folder; beside it are SOURCEUp and SOURCEDown."""


def write_datacard(
    templates: TemplateSet, folder: Path | str, *, channel: str = "signal_region", mc_stat: bool = True
) -> Path:
    """Write `datacard.txt` and `shapes.root`.

    Parameters
    ----------
    templates
        Templates.
    folder
        Where to write; made if it is not there.
    channel
        Name of the bin in the card and of the folder in the shapes file.
    mc_stat
        Whether to ask combine for MC statistics.

    Returns
    -------
    Path
        The card, for `combine -M Significance -t -1 --expectSignal 1 datacard.txt`.
    """
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    (channel,) = choose_words([channel])
    processes = _spell([process.name for process in templates.processes])
    sources = _spell(templates.sources)
    spelt = templates.renamed(processes, sources)
    _write_shapes(spelt, root / "shapes.root", channel)
    lines = [*_head(spelt), *_list_spellings("process", processes), *_list_spellings("source", sources)]
    lines += [*_rates(spelt, channel), *_sources(spelt)]
    if mc_stat:
        lines += [f"{channel} autoMCStats 0"]
    card = root / "datacard.txt"
    card.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return card


def _spell(names: Sequence[str]) -> dict[str, str]:
    return dict(zip(names, choose_words(names, RESERVED), strict=True))


def _list_spellings(kind: str, words: Mapping[str, str]) -> Iterable[str]:
    """Comments that say what names became of, where they are not the same."""
    return [f"# {kind} {name!r} is called {word} here" for name, word in words.items() if name != word]


def _ordered(templates: TemplateSet) -> tuple[ProcessTemplates, ...]:
    return templates.of_role(Role.SIGNAL) + templates.of_role(Role.BACKGROUND)


def _head(templates: TemplateSet) -> Iterable[str]:
    yield "imax 1"
    yield f"jmax {len(templates.processes) - 1}"
    yield "kmax *"
    yield "-" * 80
    yield f"shapes * * shapes.root $CHANNEL/$PROCESS/{NOMINAL} $CHANNEL/$PROCESS/$SYSTEMATIC"
    yield "shapes data_obs * shapes.root $CHANNEL/data_obs"
    yield "-" * 80


def _rates(templates: TemplateSet, channel: str) -> Iterable[str]:
    data = templates.asimov if templates.data is None else templates.data
    processes = _ordered(templates)
    n_signal = len(templates.of_role(Role.SIGNAL))
    yield f"bin {channel}"
    yield f"observation {data.sum():.10g}"
    yield "-" * 80
    yield _line("bin", [channel] * len(processes))
    yield _line("process", [p.name for p in processes])
    yield _line("process", [str(i - n_signal + 1) for i in range(len(processes))])
    yield _line("rate", [f"{p.nominal.sum():.10g}" for p in processes])
    yield "-" * 80


def _sources(templates: TemplateSet) -> Iterable[str]:
    for name in templates.sources:
        acting = [p.shifts.get(name) for p in _ordered(templates)]
        if _is_norm(templates, name):
            cells = ["-" if s is None or s.factors is None else "{:.6g}/{:.6g}".format(*s.factors) for s in acting]
            yield _line(f"{name} lnN", cells)
        else:
            yield _line(f"{name} shape", ["-" if shift is None else "1" for shift in acting])


def _is_norm(templates: TemplateSet, name: str) -> bool:
    acting = [p.shifts[name] for p in templates.processes if name in p.shifts]
    return all(shift.factors is not None for shift in acting)


def _line(head: str, cells: Sequence[str]) -> str:
    return head.ljust(36) + " ".join(cell.ljust(16) for cell in cells).rstrip()


def _write_shapes(templates: TemplateSet, path: Path, channel: str) -> None:
    import uproot

    data = templates.asimov if templates.data is None else templates.data
    with uproot.recreate(path) as file:
        file[f"{channel}/data_obs"] = make_histogram(data, np.maximum(data, 0.0), templates.edges)
        for process in templates.processes:
            file[f"{channel}/{process.name}/{NOMINAL}"] = templates.histogram(process.name)
            for name in process.shifts:
                if not _is_norm(templates, name):
                    for suffix in ("Up", "Down"):
                        shifted = templates.histogram(process.name, name, suffix.lower())
                        file[f"{channel}/{process.name}/{name}{suffix}"] = shifted
