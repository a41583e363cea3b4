"""Names of the parameters of a measurement: factors without prior, and parts of sources that are decorrelated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from qbdt.errors import FitError
from qbdt.files import choose_words
from qbdt.inference.templates.template_set import TemplateSet


def as_lists(what: str, given: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return names and their members; a member that is not in a list is refused."""
    for name, members in given.items():
        if isinstance(members, str) or not members:
            raise FitError(f"{what}: {name}={members!r}: a list of names is needed")
    return {name: tuple(members) for name, members in given.items()}


def name_factors(free: Mapping[str, Sequence[str]] | Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Free normalisations and the processes that each scales."""
    if isinstance(free, str):
        raise FitError(f"free={free!r}: a list of names is needed")
    if isinstance(free, Mapping):
        return as_lists("free", free)
    words = choose_words(free)
    return {f"norm_{word}": (process,) for word, process in zip(words, free, strict=True)}


def name_tied(process: str) -> tuple[str, str, str]:
    """Names of the three factors of a background whose yields in four regions are tied; see `Measurement.tie`."""
    (word,) = choose_words([process])
    return f"norm_{word}", f"transfer_{word}", f"side_{word}"


def require_different_factors(
    strengths: Iterable[str], free: Mapping[str, Sequence[str]] | Sequence[str], abcd: Iterable[str]
) -> None:
    """Refuse factors without prior that would be one, since they have one name; `abcd` are the tied processes."""
    tied = tuple(abcd)
    scaled = {process for processes in name_factors(free).values() for process in processes}
    if twice := [process for process in tied if process in scaled]:
        raise FitError(f"process {twice[0]} is scaled by two parameters: name it in one")
    kinds = [
        *((name, "a strength") for name in strengths),
        *((name, "a free normalisation") for name in name_factors(free)),
        *((name, f"a factor of abcd, of {process}") for process in tied for name in name_tied(process)),
    ]
    known: dict[str, str] = {}
    for name, kind in kinds:
        if name in known:
            raise FitError(f"{name} is {known[name]} and {kind}: rename one")
        known[name] = kind


def name_parts(region_name: str, region: TemplateSet, source: str, by: set[str]) -> dict[str, str]:
    """Names that a decorrelated source has on each process that it acts on in a region."""
    middle = f"{source}_{region_name}" if "region" in by else source
    acting = [p.name for p in region.processes if source in p.shifts]
    return {name: f"{middle}_{name}" if "process" in by else middle for name in acting}


def require_different_parts(
    regions: Mapping[str, TemplateSet], source: str, by: set[str], sources: Sequence[str]
) -> None:
    """Refuse to decorrelate a source into parts that would be one, or one of all `sources`, by their name."""
    known: dict[str, tuple[str, str]] = {}
    for region, templates in regions.items():
        for process, name in name_parts(region, templates, source, by).items():
            part = (region if "region" in by else "", process if "process" in by else "")
            if name in sources or known.setdefault(name, part) != part:
                other = f"source {name}" if name in sources else f"{source} in {_join(known[name])}"
                raise FitError(
                    f"decorrelate: {source} in {_join(part)} and {other} would both be called {name}: rename one"
                )


def _join(part: tuple[str, str]) -> str:
    return ", ".join(name for name in part if name)
