"""CMS combine: a datacard and its shapes file.

Normalisations are `lnN`, everything else `shape` with up and down templates; MC statistics are `autoMCStats` for all
bins (threshold 0); combine scales the signal with the background there, which pyhf's form does not. A source that is a
normalisation for one process and a shape for another is written as a shape for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from qbdt.data import Role
from qbdt.errors import FitError
from qbdt.inference.templates.template_set import ProcessTemplates, TemplateSet, make_histogram

__all__ = ["write_datacard"]


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
    for name in (channel, *(p.name for p in templates.processes), *templates.sources):
        if not name or any(c.isspace() or c in "/$*?" for c in name):
            raise FitError(f"combine datacard: the name {name!r} must have no blanks and none of / $ * ?")
    _write_shapes(templates, root / "shapes.root", channel)
    lines = [*_head(templates), *_rates(templates, channel), *_sources(templates)]
    if mc_stat:
        lines += [f"{channel} autoMCStats 0"]
    card = root / "datacard.txt"
    card.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return card


def _ordered(templates: TemplateSet) -> tuple[ProcessTemplates, ...]:
    return templates.of_role(Role.SIGNAL) + templates.of_role(Role.BACKGROUND)


def _head(templates: TemplateSet) -> Iterable[str]:
    yield "imax 1"
    yield f"jmax {len(templates.processes) - 1}"
    yield "kmax *"
    yield "-" * 80
    yield "shapes * * shapes.root $CHANNEL/$PROCESS $CHANNEL/$PROCESS_$SYSTEMATIC"
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
            file[f"{channel}/{process.name}"] = templates.histogram(process.name)
            for name in process.shifts:
                if not _is_norm(templates, name):
                    for suffix in ("Up", "Down"):
                        shifted = templates.histogram(process.name, name, suffix.lower())
                        file[f"{channel}/{process.name}_{name}{suffix}"] = shifted
