"""Figures of the inputs of an analysis: as a document, or written to a folder (`qbdt plot`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.analysis.blinding import describe_blinding, find_open_data, open_data
from qbdt.analysis.inputs.drawn_variables import add_variables
from qbdt.analysis.inputs.histograms import choose_edges, correlate, fill_variable, source_shape
from qbdt.analysis.inputs.yields import count_cuts, yields_table
from qbdt.analysis.loader import load_regions
from qbdt.analysis.region_events import RegionEvents
from qbdt.analysis.schema import Analysis, Variable
from qbdt.arrays import Floats
from qbdt.data import Dataset, Kind, Role
from qbdt.errors import ConfigError, OutputError
from qbdt.files import choose_words, require_place
from qbdt.inference.templates import TemplateSet
from qbdt.progress import Progress, silent
from qbdt.report import PAGE, Block, Document, Figure, Fold, Headline, Labels, Section, write_report
from qbdt.report.figures.inputs import feature_correlation, source_shapes, stacked_variable
from qbdt.report.style import save


def inputs_document(
    analysis: Analysis,
    folder: str | Path = ".",
    variables: Sequence[str] = (),
    progress: Progress = silent,
    *,
    every_source: bool = False,
) -> Document:
    """Draw the inputs of an analysis, for `qbdt.report.write_report`; recorded data as blind as the fit shows them.

    Parameters
    ----------
    variables
        Expressions to draw beside the features and the expressions under `variables`.
    every_source
        Whether to draw each source in every variable, and not only in the one that it moves most.
    """
    plan = _Plan.of(analysis, variables)
    found = load_regions(plan.read, folder, progress).require_disjoint()
    regions = [_Region(name, plan, _events(found, name)) for name in analysis.regions or [""]]
    with_data = bool(found.whole.of_role(Role.DATA))
    blind = with_data and analysis.fit.blind
    hidden_yields = blind and not all(one.is_open for one in regions)
    cuts = count_cuts(_without_data(analysis) if hidden_yields else analysis, folder, progress)
    flow = () if cuts is None else (cuts.table(),)
    sections = [Section(one.title, tuple(one.variables())) for one in regions]
    first = regions[0]
    sections += [
        *(Section(one.title_of("Sources"), tuple(one.sources(every_source))) for one in regions),
        Section("Correlations of features", tuple(first.correlations())),
        Section("Yields", (*(yields_table(r.title, r.events, r.is_open) for r in regions), *flow)),
    ]
    signal, background = (first.events.total(role) for role in (Role.SIGNAL, Role.BACKGROUND))
    headlines = (
        Headline("expected signal", f"{signal:,.4g}", first.title if analysis.regions else ""),
        Headline("expected background", f"{background:,.4g}"),
        Headline("sources", str(len(first.events.systematics)), f"{len(plan.names)} variables"),
    )
    subtitle = f"{describe_blinding(blind, with_data)} What the analysis reads, before any training."
    return Document(f"{analysis.name}: inputs", subtitle, headlines, tuple(s for s in sections if s.blocks))


def _events(found: RegionEvents, region: str) -> Dataset:
    return found.select(region) if region else found.every_event()


def _without_data(analysis: Analysis) -> Analysis:
    simulated = {name: sample for name, sample in analysis.samples.items() if sample.role != "data"}
    return analysis.model_copy(update={"samples": simulated})


@dataclass(frozen=True)
class _Plan:
    """Content of the page: the analysis, the one that also reads expressions, and the names of all variables."""

    analysis: Analysis
    read: Analysis
    names: tuple[str, ...]

    @classmethod
    def of(cls, analysis: Analysis, variables: Sequence[str]) -> _Plan:
        own = [name for name, variable in analysis.variables.items() if variable.expression is not None]
        read = add_variables(analysis, [*own, *variables])
        return cls(analysis, read, tuple(read.features))


class _Region:
    """Events of one region and the figures of its variables."""

    def __init__(self, name: str, plan: _Plan, events: Dataset) -> None:
        self._name, self._plan, self.events = name, plan, events
        self._labels = plan.analysis.figure_labels()
        self._filled: dict[str, TemplateSet] = {}

    @property
    def title(self) -> str:
        """Name of the region."""
        return f"Region {self._name}" if self._name else "Variables"

    def title_of(self, what: str) -> str:
        """Title of a section on this region."""
        return f"{what} in region {self._name}" if self._name else what

    @property
    def _label(self) -> str:
        """What figures call the region."""
        return self._labels.region(self._name) if self._name else ""

    @property
    def _prefix(self) -> str:
        return f"{self._name}-" if self._name else ""

    @property
    def is_open(self) -> bool:
        """Whether no bin of any variable hides recorded data."""
        return not any(np.isnan(data).any() for data in map(self._data, self._names) if data is not None)

    @property
    def _names(self) -> tuple[str, ...]:
        return self._plan.names or self.events.features

    def _variable(self, name: str) -> Variable:
        return self._plan.analysis.variables.get(name, Variable())

    def _templates(self, name: str) -> TemplateSet:
        if name not in self._filled:
            edges = choose_edges(self.events, name, self._variable(name))
            self._filled[name] = fill_variable(self.events, name, edges, self._labels.variable(name))
        return self._filled[name]

    def _data(self, name: str) -> Floats | None:
        """Recorded events per bin, NaN where they are hidden."""
        templates = self._templates(name)
        shown = find_open_data({self._name: templates}, self._plan.analysis)
        return templates.data if shown is None else shown[self._name]

    def variables(self) -> Iterator[Block]:
        """Every variable, linear and, on demand, logarithmic."""
        words = choose_words(self._names)
        prefix, logarithmic = self._prefix, []
        for name, word in zip(self._names, words, strict=True):
            yield self._figure(name, f"{prefix}{word}", log=False)
            logarithmic.append(self._figure(name, f"{prefix}{word}-log", log=True))
        yield Fold("With logarithmic axes", tuple(logarithmic))

    def _figure(self, name: str, word: str, log: bool) -> Figure:
        templates, data = self._templates(name), self._data(name)
        columns: dict[str, Any] = {"low": templates.edges[:-1].tolist(), "high": templates.edges[1:].tolist()}
        columns |= {process.name: process.nominal.tolist() for process in templates.processes}
        columns |= {} if data is None else {"data": [None if np.isnan(n) else n for n in data.tolist()]}
        drawn = stacked_variable(templates, self._labels, log=log, data=data, title=self._label)
        return Figure(word, drawn, f"{name}; under- and overflow in the outer bins.", columns)

    def sources(self, every: bool = False) -> Iterator[Block]:
        """Each source in the feature that it moves most, for background and signal; on demand in every variable."""
        moved = _most_moved(self.events)
        names = [s.name for s in self.events.systematics if s.kind is not Kind.NORM]
        words = dict(zip(self._names, choose_words(self._names), strict=True))
        for source, word in zip(names, choose_words(names), strict=True):
            most = moved.get(source) or self._names[0]
            yield self._source(source, most, f"{self._prefix}source-{word}", "which it moves most; ")
            if every:
                others = [name for name in self._names if name != most]
                drawn = [self._source(source, name, f"{self._prefix}source-{word}-{words[name]}") for name in others]
                yield Fold(f"{source} in all variables", tuple(drawn))

    def _source(self, source: str, name: str, word: str, remark: str = "") -> Figure:
        edges = self._templates(name).edges
        found = {str(role): source_shape(self.events, source, name, edges, role) for role in Role}
        shapes = {title: shape for title, shape in found.items() if shape is not None}
        columns: dict[str, Any] = {"low": edges[:-1].tolist(), "high": edges[1:].tolist()}
        for title, shape in shapes.items():
            columns |= {f"{title} {side}": getattr(shape, side).tolist() for side in shape._fields}
        titled = {f"{self._label}, {role}" if self._name else role: shape for role, shape in shapes.items()}
        drawn = source_shapes(source, self._labels.variable(name), edges, titled, self._labels)
        return Figure(word, drawn, f"{source} in {name}, {remark}bands are the statistics of the shift.", columns)

    def correlations(self) -> Iterator[Figure]:
        """Correlations of all features, of signal and of background."""
        features = self.events.with_features(self._plan.analysis.features or self.events.features)
        titles = [self._variable(name).label or Labels().variable(name) for name in features.features]  # without units
        for role in (Role.SIGNAL, Role.BACKGROUND):
            matrix = correlate(features, role)
            columns: dict[str, Any] = {"feature": list(features.features)}
            columns |= {name: matrix[:, i].tolist() for i, name in enumerate(features.features)}
            caption = f"Correlations of features, {role}."
            yield Figure(f"correlation-{role}", feature_correlation(titles, matrix, str(role)), caption, columns)


def _most_moved(events: Dataset) -> Mapping[str, str]:
    """Feature that each source moves most, over all processes."""
    best: dict[str, tuple[float, str]] = {}
    for row in events.summary().sources:
        if row.moves is not None and abs(row.moves_up or 0.0) >= best.get(row.name, (0.0, ""))[0]:
            best[row.name] = (abs(row.moves_up or 0.0), row.moves)
    return {source: name for source, (_, name) in best.items()}


FORMATS = ("png", "pdf", "svg")


def plot_inputs(
    analysis: Analysis,
    folder: str | Path,
    out: str | Path,
    *,
    variables: Sequence[str] = (),
    formats: Sequence[str] = (),
    every_source: bool = False,
    unblind: bool = False,
    force: bool = False,
    progress: Progress = silent,
) -> Path:
    """Draw the inputs of an analysis into a folder: a page that needs nothing else, notes in Markdown, and all figures.

    Parameters
    ----------
    out
        Folder to write to; made if it is not there. Figures are in `figures/` as SVG, all of them in `figures.pdf`.
    variables, every_source
        As for `inputs_document`.
    formats
        png or pdf: write each figure in these formats too.
    unblind
        Show all recorded data.
    force
        Replace an earlier page.

    Returns
    -------
    Path
        The page.
    """
    if unknown := [name for name in formats if name not in FORMATS]:
        raise ConfigError(f"formats: {unknown[0]!r}: must be {', '.join(FORMATS)}")
    if not force and (Path(out) / PAGE).exists():
        raise OutputError(f"{Path(out) / PAGE} is there already; force=True replaces it")
    require_place(Path(out), folder=True)
    shown = open_data(analysis) if unblind else analysis
    document = inputs_document(shown, folder, variables, progress, every_source=every_source)
    page = write_report(document, Path(out), progress)
    for ending in formats:
        for figure in document.figures():
            save(figure.drawn, Path(out) / "figures" / f"{figure.name}.{ending}")
    return page.resolve()
