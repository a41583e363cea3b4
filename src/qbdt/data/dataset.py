"""`Dataset`: samples, systematic sources and a fold rule over the same named features.

Flows in: `Events` from readers or arrays. Flows out: nominal and varied events per process, folds, yields. Everything
is immutable; selections share the feature columns of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from qbdt.arrays import LARGEST_YIELD, Floats
from qbdt.data.events import Events, Selection
from qbdt.data.flat_systematic import FlatSystematic, Kind
from qbdt.data.folds import FoldRule
from qbdt.data.sample import Role, Sample, Tally
from qbdt.data.systematic import Systematic, find_components
from qbdt.errors import DataError, find_repeated, hint_at

if TYPE_CHECKING:
    from qbdt.data.summary import DatasetSummary

Named = TypeVar("Named")


class Dataset:
    """Samples with their systematic sources.

    Parameters
    ----------
    samples
        One `Sample` per process; all have the same features in the same order.
    systematics
        Sources bound to processes; each name once.
    folds
        How events are divided for cross-training; None where there is no rule.

    Examples
    --------
    >>> signal = Sample("higgs", Role.SIGNAL, Events({"m": [125.0, 124.0]}, [0.5, 0.5]))
    >>> background = Sample("ttbar", Role.BACKGROUND, Events({"m": [80.0, 200.0]}, [10.0, 20.0]))
    >>> data = Dataset([signal, background], [Systematic.norm("xs", 0.1, processes=["ttbar"])])
    >>> data.total(Role.BACKGROUND), data.varied("xs", "up")["ttbar"].total
    (30.0, 33.0)
    """

    def __init__(
        self, samples: Sequence[Sample], systematics: Sequence[Systematic] = (), folds: FoldRule | None = None
    ) -> None:
        systematics = Systematic.read_list(systematics)
        self._samples = {sample.name: sample for sample in samples}
        self._systematics: dict[str, Systematic] = {source.name: source for source in systematics}
        self._folds = folds
        _refuse_repeated("sample", [sample.name for sample in samples])
        _refuse_repeated("systematic", [source.name for source in systematics])
        if not samples:
            raise DataError("a dataset needs at least one sample")
        self._features = samples[0].events.features
        for sample in samples[1:]:
            self._check_features(sample.events, f"sample {sample.name}")
        for source in systematics:
            self._check_source(source)

    @property
    def features(self) -> tuple[str, ...]:
        """Feature names, in order."""
        return self._features

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All samples, in order."""
        return tuple(self._samples.values())

    @property
    def systematics(self) -> tuple[Systematic, ...]:
        """All systematic sources, in order."""
        return tuple(self._systematics.values())

    @property
    def folds(self) -> FoldRule | None:
        """The fold rule, if there is one."""
        return self._folds

    def sample(self, name: str) -> Sample:
        """Return the sample of one process."""
        return _look_up("sample", name, self._samples)

    def systematic(self, name: str) -> Systematic:
        """Return one systematic source."""
        return _look_up("systematic", name, self._systematics)

    def of_role(self, role: Role | str) -> tuple[Sample, ...]:
        """Return the samples of one role."""
        return tuple(sample for sample in self.samples if sample.role is Role(role))

    def total(self, role: Role | str) -> float:
        """Expected yield of all samples of one role."""
        return sum(sample.events.total for sample in self.of_role(role))

    def varied(self, source: str, direction: str) -> dict[str, Events]:
        """Events of the processes that a source acts on, moved "up" or "down" by one standard deviation.

        Processes that are not in the result are nominal. Asking a one-sided source for "down" is an error.
        """
        systematic = self.systematic(source)
        sides = dict(systematic.directions)
        if direction not in sides:
            raise DataError(f"systematic {source} has no {direction!r} variation, only {', '.join(sides)}")
        return {process: change.apply(self._samples[process].events) for process, change in sides[direction].items()}

    def select(self, choose: Callable[[Events], Selection]) -> Dataset:
        """Keep the rows that `choose` picks from each set of events, nominal and varied alike."""
        picked = {sample.name: choose(sample.events) for sample in self.samples}
        samples = [Sample(s.name, s.role, s.events[picked[s.name]]) for s in self.samples]
        sources = [s.map(lambda process, change: change.select(picked[process], choose)) for s in self.systematics]
        return Dataset(samples, sources, self._folds)

    def fold(self, number: int) -> Dataset:
        """Return the events of one fold."""
        return self.select(lambda events: self._fold_of(events, number) == number)

    def without_fold(self, number: int) -> Dataset:
        """Return the events of all other folds, on which a model for this fold may be trained."""
        return self.select(lambda events: self._fold_of(events, number) != number)

    def with_folds(self, folds: FoldRule | None) -> Dataset:
        """Return the same events under another fold rule."""
        return Dataset(self.samples, self.systematics, folds)

    def simulated(self) -> Dataset:
        """Return the events without recorded data; the same where there is nothing else."""
        samples = [sample for sample in self.samples if sample.role is not Role.DATA]
        return Dataset(samples, self.systematics, self.folds) if samples else self

    def with_features(self, names: Sequence[str]) -> Dataset:
        """Keep these features, in this order; no copy."""
        _refuse_repeated("feature", list(names))
        return self._map_events(lambda events: events.with_features(names))

    def transform(self, compute: Callable[[Events], Mapping[str, ArrayLike]]) -> Dataset:
        """Replace the features by computed ones, for nominal and varied events alike: scores, for example.

        Weights, identifiers, sources and folds stay. `compute` returns the new columns of the events it is given.
        """

        def changed(events: Events) -> Events:
            return Events(compute(events), events.weight, {name: events.identifier(name) for name in events.id_names})

        return self._map_events(changed)

    def _map_events(self, change: Callable[[Events], Events]) -> Dataset:
        samples = [Sample(s.name, s.role, change(s.events)) for s in self.samples]
        sources = [s.map(lambda _, variation: variation.map_events(change)) for s in self.systematics]
        return Dataset(samples, sources, self._folds)

    def scaled(self, factor: float) -> Dataset:
        """Multiply all weights of simulated events, nominal and varied, by one factor; recorded data stay.

        Examples
        --------
        >>> events = Events({"m": [80.0, 200.0]}, [1.0, 2.0])
        >>> Dataset([Sample("ttbar", Role.BACKGROUND, events)]).scaled(0.5).total(Role.BACKGROUND)
        1.5
        """
        samples = [
            s if s.role is Role.DATA else Sample(s.name, s.role, s.events.with_weight(factor * s.events.weight))
            for s in self.samples
        ]
        sources = [s.map(lambda _, v: v.map_weights(lambda weight: factor * weight)) for s in self.systematics]
        return Dataset(samples, sources, self._folds)

    def at_working_point(self, at: Mapping[str, float], linear: Collection[str] = ()) -> Dataset:
        """Return events for a training at other values of some sources: nominal ones, and Δ_k of each source.

        Of a source only Δ_k is meant: its up and down events are no variations of their own.

        Parameters
        ----------
        at
            Values of sources in standard deviations, by name; all others stay at 0.
        linear
            Sources whose response is taken as linear: their Δ_k is half the difference of up and down anywhere.

        Examples
        --------
        >>> events = Events({"m": [80.0, 200.0]}, [1.0, 2.0])
        >>> xs = Systematic.norm("xs", 0.1, processes=["ttbar"])
        >>> Dataset([Sample("ttbar", Role.BACKGROUND, events)], [xs]).at_working_point({"xs": 5}).total("background")
        4.5
        """
        from qbdt.data.working_point import move_dataset

        return move_dataset(self, at, linear)

    def with_bends(self, names: Collection[str]) -> Dataset:
        """Replace all sources by the bends of some, what is asymmetric in them, as Δ_k = (up + down)/2 − nominal.

        One-sided sources have none.
        """
        from qbdt.data.working_point import bend_dataset

        return bend_dataset(self, names)

    def with_systematics(self, names: Sequence[str]) -> Dataset:
        """Keep only these sources; a name stands for all components of a source that has some (`pdf#1`, `pdf#2`)."""
        found = [one for name in names for one in find_components(name, self._systematics) or [name]]
        return Dataset(self.samples, [self.systematic(name) for name in found], self._folds)

    def require_usable(self) -> Dataset:
        """Refuse what cannot be trained on or fitted: no signal, no background, no events, no positive yield."""
        for role in (Role.SIGNAL, Role.BACKGROUND):
            if not self.of_role(role):
                raise DataError(f"no {role} sample: signal and background are both needed")
        for tally in self.tallies():
            tally.require_usable()
        return self

    def require_fittable(self) -> Dataset:
        """Refuse yields that no likelihood in double precision can be fitted to."""
        for role in (Role.SIGNAL, Role.BACKGROUND):
            if (total := self.total(role)) > LARGEST_YIELD:
                raise DataError(
                    f"the {role} samples expect {total:.3g} events: a fit holds up to {LARGEST_YIELD:g}; are weights "
                    "scaled twice, or cross sections in another unit?"
                )
        return self

    def tallies(self) -> Iterator[Tally]:
        """Rows and yields of all samples, then of all varied events."""
        for sample in self.samples:
            yield Tally.of(f"sample {sample.name}", sample.role, sample.events)
        for source in self.systematics:
            if source.kind is Kind.NORM:
                continue
            for direction, _ in source.directions:
                for process, events in self.varied(source.name, direction).items():
                    what = f"systematic {source.name}, {direction} variation of {process}"
                    yield Tally.of(what, self._samples[process].role, events)

    def categories(self, names: Sequence[str]) -> dict[str, Floats]:
        """Values that categorical features take in nominal events of non-zero weight, increasing."""
        from qbdt.data.categories import find_categories

        return find_categories(self, names)

    def require_categories(self, names: Sequence[str]) -> None:
        """Refuse values of categorical features that are no categories, in nominal and in varied events."""
        from qbdt.data.categories import require_categories

        require_categories(self, names)

    def require_full_folds(self) -> Dataset:
        """Refuse a fold rule that leaves a fold without signal or background, or fails on a variation."""
        if self._folds is None:
            return self
        for source in self.systematics:
            for direction, _ in source.directions:
                for events in self.varied(source.name, direction).values():
                    self._folds.assign(events)
        for role in (Role.SIGNAL, Role.BACKGROUND):
            filled = {int(number) for s in self.of_role(role) for number in np.unique(self._folds.assign(s.events))}
            empty = sorted(set(range(self._folds.k)) - filled)
            if empty:
                raise DataError(f"fold {empty[0]} has no {role} events; choose another rule or fewer folds")
        return self

    def require_trainable_folds(self) -> Dataset:
        """Refuse a fold rule without one of whose folds a sample or variation has no events or no positive yield."""
        weights = self.require_full_folds().with_features(())
        for number in range(0 if self._folds is None else self._folds.k):
            try:
                weights.without_fold(number).require_usable()
            except DataError as error:
                raise DataError(f"folds: outside fold {number}, {error}") from error
        return self

    def summary(self) -> DatasetSummary:
        """Rows, yields and effects of the sources, as tables a physicist can read."""
        from qbdt.data.summary import summarise_dataset

        return summarise_dataset(self)

    @staticmethod
    def concatenate(datasets: Sequence[Dataset]) -> Dataset:
        """Join datasets over the same features: rows of the same process are joined, other processes are added.

        A source that a dataset does not have leaves its events nominal.
        """
        from qbdt.data.from_arrays import concatenate

        return concatenate(datasets)

    @staticmethod
    def from_arrays(
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        systematics: Sequence[FlatSystematic | Systematic] = (),
        feature_names: Sequence[str] | None = None,
        process: str | ArrayLike | None = None,
        folds: FoldRule | None = None,
        event_id: Any = None,
    ) -> Dataset:
        """Make a dataset of one labelled table; features are not copied.

        Parameters
        ----------
        X
            Rows × features: an array, a pandas or Arrow table, or a mapping of columns.
        y
            1 for signal, 0 (or −1) for background.
        sample_weight
            True expected yield of each row; 1 if not given.
        systematics
            Sources over the same table, and normalisations by names of processes.
        feature_names
            Names for the columns of an array; x0, x1, … if not given.
        process
            Process of each row, or the column of X (and of the tables of shape sources) that names it; "signal" and
            "background" if not given.
        folds
            Rule that divides events for cross-training. Its columns are taken from X (and from the tables of shape
            sources) and are no features.
        event_id
            Identifiers that tell events apart: an array over the rows (or rows × numbers), or the columns of X (and of
            the tables of shape sources) that hold them, which are no features. Rows are put into their order.

        Examples
        --------
        >>> table = {"m": [125.0, 91.0, 170.0], "process": ["higgs", "ztautau", "ttbar"]}
        >>> source = Systematic.norm("ttbar_xs", 0.06, processes=["ttbar"])
        >>> Dataset.from_arrays(table, [1, 0, 0], systematics=[source], process="process")
        Dataset(higgs (signal), ztautau (background), ttbar (background); 1 features, 1 systematics)
        """
        from qbdt.data.from_arrays import from_arrays

        return from_arrays(X, y, sample_weight, systematics, feature_names, process, folds, event_id)

    def _fold_of(self, events: Events, number: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        if self._folds is None:
            raise DataError("the dataset has no fold rule: give `folds` an identifier column")
        if not 0 <= number < self._folds.k:
            raise DataError(f"fold {number}: the rule has folds 0 … {self._folds.k - 1}")
        return self._folds.assign(events)

    def _check_features(self, events: Events, what: str) -> None:
        if events.features != self._features:
            absent = [name for name in self._features if name not in events.features]
            extra = [name for name in events.features if name not in self._features]
            faults = [f"lacks {', '.join(absent)}"] * bool(absent) + [f"has extra {', '.join(extra)}"] * bool(extra)
            difference = "; ".join(faults) or "has them in another order"
            raise DataError(f"{what} has other features than sample {self.samples[0].name}: it {difference}")

    def _check_source(self, source: Systematic) -> None:
        if isinstance(source, FlatSystematic):
            raise DataError(
                f"systematic {source.name} is given over one table: use Dataset.from_arrays, or name processes"
            )
        for direction, effect in source.directions:
            for process, change in effect.items():
                what = f"systematic {source.name}, {direction} variation"
                sample = _look_up("sample", process, self._samples, f"{what}: ")
                if sample.role is Role.DATA:
                    raise DataError(f"{what}: {process} is recorded data, which no source varies")
                if change.replacement is not None:
                    self._check_features(change.replacement, f"{what} of {process}")
                elif change.n_rows not in (None, sample.events.n_rows):
                    raise DataError(f"{what} of {process} has {change.n_rows} rows, nominal has {sample.events.n_rows}")

    def _repr_html_(self) -> str:
        from qbdt.data.summary import overview_html

        return overview_html(self)

    def __repr__(self) -> str:
        names = ", ".join(f"{s.name} ({s.role})" for s in self.samples)
        return f"Dataset({names}; {len(self.features)} features, {len(self._systematics)} systematics)"


def _refuse_repeated(what: str, names: list[str]) -> None:
    if twice := find_repeated(names):
        raise DataError(f"{what} {', '.join(twice)} is given twice: names must differ")


def _look_up(what: str, name: str, known: Mapping[str, Named], context: str = "") -> Named:
    if name in known:
        return known[name]
    raise DataError(f"{context}no {what} {name}; {hint_at(name, known)}")
