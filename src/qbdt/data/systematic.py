"""`Systematic`: one source of uncertainty, its effect on each process for one standard deviation, and its Δ_k.

A source holds, for up and optionally down, one `Variation` per process it acts on; a process that is not named stays
nominal. A `Variation` maps nominal events to varied ones, so nothing downstream asks which of the three kinds it is.
The flat form, for callers who have one table for all processes, is bound to processes by `Dataset.from_arrays`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, overload

from numpy.typing import ArrayLike

from qbdt.arrays import Floats
from qbdt.data.events import Events, as_mapping
from qbdt.data.flat_systematic import FlatSystematic, Kind, LabelledTable, check_name
from qbdt.data.variations import (
    Replacement,
    Rescaling,
    Reweighting,
    Scaling,
    Variation,
    check_weights,
    relative_changes,
)
from qbdt.errors import DataError

Additive = TypeVar("Additive", float, Floats)

Size: TypeAlias = float | tuple[float, float]
"""Relative size of a normalisation, or its changes down and up."""

ONE_SIDED: Mapping[str, float] = {"nominal": -1.0, "up": 1.0}
TWO_SIDED: Mapping[str, float] = {"nominal": 0.0, "up": 0.5, "down": -0.5}
"""Coefficients of Δ_k: up − nominal, or (up − down)/2. Powers of two, so that they round nothing."""


def find_components(name: str, known: Iterable[str]) -> list[str]:
    """Find the sources that a name stands for: the one that is called so, or all that are components of it.

    Examples
    --------
    >>> find_components("pdf", ["jes", "pdf#1", "pdf#2"])
    ['pdf#1', 'pdf#2']
    """
    names = list(known)
    return [name] if name in names else [one for one in names if one.startswith(Systematic.name_component(name, ""))]


@dataclass(frozen=True, eq=False)
class Systematic:
    """One source of systematic uncertainty, one- or two-sided, bound to the processes it acts on.

    Make one with `weight`, `shape` or `norm`. Given a mapping from process to arrays these return a `Systematic` for a
    `Dataset`; given plain arrays, a `FlatSystematic` for `QBDTClassifier.fit` or `Dataset.from_arrays`.

    Examples
    --------
    >>> Systematic.norm("ttbar_xs", 0.06, processes=["ttbar"])
    Systematic(ttbar_xs: norm on ttbar, up and down)
    """

    name: str
    kind: Kind
    up: Mapping[str, Variation]
    down: Mapping[str, Variation] | None

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "up", as_mapping(self.up))
        if not self.up:
            raise DataError(f"systematic {self.name} acts on no process")
        if self.down is not None:
            object.__setattr__(self, "down", as_mapping(self.down))
            if set(self.down) != set(self.up):
                up, down = (", ".join(side) or "nothing" for side in (self.up, self.down))
                raise DataError(f"systematic {self.name}: up acts on {up}, down on {down}")

    @staticmethod
    def name_component(source: str, component: str | int) -> str:
        """Name of a source that is one of several under a common name: an era's, or a principal component.

        Examples
        --------
        >>> Systematic.name_component("pdf", 1)
        'pdf#1'
        """
        return f"{source}#{component}"

    @staticmethod
    def read_list(systematics: Any) -> list[Any]:
        """Return sources of a list, none for None; refuse a single source, and anything that is no source."""
        if systematics is None:
            return []
        if isinstance(systematics, str | Systematic | FlatSystematic) or not isinstance(systematics, Iterable):
            raise DataError(f"systematics={systematics!r}: a list of sources is needed")
        sources = list(systematics)
        for source in sources:
            if not isinstance(source, Systematic | FlatSystematic):
                raise DataError(
                    f"systematics hold {source!r}: make them with Systematic.shape, .weight or .norm over arrays"
                )
        return sources

    @property
    def processes(self) -> tuple[str, ...]:
        """Names of the processes it acts on."""
        return tuple(self.up)

    @property
    def two_sided(self) -> bool:
        """Whether up and down are given separately."""
        return self.down is not None

    @property
    def directions(self) -> Iterator[tuple[str, Mapping[str, Variation]]]:
        """Pairs ("up", …) and, where given, ("down", …)."""
        yield "up", self.up
        if self.down is not None:
            yield "down", self.down

    @property
    def coefficients(self) -> Mapping[str, float]:
        """Δ_k, the linear change for θ_k = +1, as coefficients of the nominal, up and down yields; see `shift`."""
        return TWO_SIDED if self.two_sided else ONE_SIDED

    @staticmethod
    def shift(nominal: Additive, up: Additive, down: Additive | None = None) -> Additive:
        """Δ_k of anything additive, such as yields, weights of rows or histograms.

        It is half the difference of up and down, or up minus nominal where there is no down. Nothing else in the
        package knows this definition.

        Examples
        --------
        >>> Systematic.shift(10.0, 12.0), Systematic.shift(10.0, 12.0, 9.0)
        (2.0, 1.5)
        """
        if down is None:
            return ONE_SIDED["up"] * up + ONE_SIDED["nominal"] * nominal
        return TWO_SIDED["up"] * up + TWO_SIDED["down"] * down

    def row_shifts(self, process: str, nominal: Events) -> Floats:
        """Δ_k of every row of a process, for a source that keeps the nominal rows."""
        weights = [effect[process].apply(nominal).weight for _, effect in self.directions]
        return self.shift(nominal.weight, *weights)

    def relative_shift(self, process: str) -> float | None:
        """Δ_k over the nominal yield, for a source that scales the whole process; None for any other."""
        sizes = [effect[process].relative_size for _, effect in self.directions]
        known = [size for size in sizes if size is not None]
        return self.shift(0.0, *known) if len(known) == len(sizes) else None

    def shift_terms(self, process: str, nominal: Events) -> list[tuple[float, Events]]:
        """Δ_k of a process as a sum over events: nominal, up and, where given, down, each with its coefficient."""
        sides = {"nominal": nominal, **{side: effect[process].apply(nominal) for side, effect in self.directions}}
        return [(self.coefficients[side], events) for side, events in sides.items()]

    def replaces_events(self, process: str) -> bool:
        """Whether a direction brings other events of a process instead of changing the weights of the nominal ones."""
        return any(effect[process].replacement is not None for _, effect in self.directions)

    def map(self, change: Callable[[str, Variation], Variation]) -> Systematic:
        """Return the same source with each process's variation replaced by `change(process, variation)`."""
        sides = {d: {p: change(p, v) for p, v in effect.items()} for d, effect in self.directions}
        return Systematic(self.name, self.kind, sides["up"], sides.get("down"))

    def map_replacements(self, change: Callable[[Mapping[str, Events]], Mapping[str, Events]]) -> Systematic:
        """Change the events that the source brings, those of all processes of a direction together."""
        sides: dict[str, dict[str, Variation]] = {}
        for direction, effect in self.directions:
            brought = {p: v.replacement for p, v in effect.items() if v.replacement is not None}
            changed = change(brought) if brought else {}
            sides[direction] = {p: Replacement(changed[p]) if p in brought else v for p, v in effect.items()}
        return Systematic(self.name, self.kind, sides["up"], sides.get("down"))

    @overload
    @classmethod
    def weight(
        cls, name: str, up: Mapping[str, ArrayLike], down: Mapping[str, ArrayLike] | None = None
    ) -> Systematic: ...

    @overload
    @classmethod
    def weight(cls, name: str, up: ArrayLike, down: ArrayLike | None = None) -> FlatSystematic: ...

    @classmethod
    def weight(cls, name: str, up: Any, down: Any = None) -> Systematic | FlatSystematic:
        """Other weights for the same rows.

        Parameters
        ----------
        name
            Name of the source: that of its nuisance parameter.
        up
            Weights for all rows of X, or a mapping from process to the weights of its rows.
        down
            The same for the other direction; without it the source is one-sided.
        """
        _require_alike(name, up, down)
        if not isinstance(up, Mapping):
            return FlatSystematic(name, Kind.WEIGHT, up, down)
        return cls(name, Kind.WEIGHT, _reweightings(name, up), None if down is None else _reweightings(name, down))

    @classmethod
    def rescaling(cls, name: str, up: Mapping[str, Floats], down: Mapping[str, Floats] | None = None) -> Systematic:
        """Relative shifts of the weights of each row; down is their opposite if it is not given.

        Parameters
        ----------
        name
            Name of the source.
        up
            Process to relative shifts, 0.1 for +10 %; kept as they are, also in single precision.
        down
            The same for the other direction.
        """
        shifts, sign = (up, -1.0) if down is None else (down, 1.0)
        opposite = {process: Rescaling(shift, sign) for process, shift in shifts.items()}
        return cls(name, Kind.WEIGHT, {process: Rescaling(shift) for process, shift in up.items()}, opposite)

    @overload
    @classmethod
    def shape(cls, name: str, up: Mapping[str, Events], down: Mapping[str, Events] | None = None) -> Systematic: ...

    @overload
    @classmethod
    def shape(
        cls, name: str, up: LabelledTable, down: LabelledTable | None = None, *, event_id: Any = None
    ) -> FlatSystematic: ...

    @classmethod
    def shape(cls, name: str, up: Any, down: Any = None, *, event_id: Any = None) -> Systematic | FlatSystematic:
        """Another set of events.

        Parameters
        ----------
        name
            Name of the source.
        up
            A tuple (X, y, weight), or a mapping from process to its varied `Events`.
        down
            The same for the other direction; without it the source is one-sided.
        event_id
            Identifiers of the rows of `up` (and of `down`), where `fit` is given those of X as an array; a tuple
            (of up, of down) where the two tables have other rows.
        """
        _require_alike(name, up, down)
        if not isinstance(up, Mapping):
            both = event_id if isinstance(event_id, tuple) else (event_id, event_id)
            return FlatSystematic(name, Kind.SHAPE, up, down, both)
        if event_id is not None:
            raise DataError(f"systematic {name}: event_id goes with tables; Events have their identifiers as `ids`")
        for events in (*up.values(), *(down or {}).values()):
            if not isinstance(events, Events):
                raise DataError(f"systematic {name}: a {type(events).__name__} is given where Events are needed")
        replaced = {process: Replacement(events) for process, events in up.items()}
        return cls(name, Kind.SHAPE, replaced, None if down is None else {p: Replacement(e) for p, e in down.items()})

    @overload
    @classmethod
    def norm(cls, name: str, size: Size, *, processes: Sequence[str]) -> Systematic: ...

    @overload
    @classmethod
    def norm(cls, name: str, size: Mapping[str, Size]) -> Systematic: ...

    @overload
    @classmethod
    def norm(cls, name: str, size: Size, where: ArrayLike | None = None) -> FlatSystematic: ...

    @classmethod
    def norm(
        cls, name: str, size: Any, where: ArrayLike | None = None, *, processes: Sequence[str] | None = None
    ) -> Systematic | FlatSystematic:
        """Scale the yield, by 1 ± size where size is below 1.

        Parameters
        ----------
        name
            Name of the source.
        size
            Relative size of one standard deviation, 0.10 for 10 %. From 1 on it is log-normal: 1.0 is a factor of 2 up
            and of 1/2 down. A pair gives the changes down and up, (−0.3, 0.6); a mapping from process to sizes binds
            the source to these processes.
        where
            Mask of the rows of X it acts on; all rows if not given.
        processes
            Instead of `where`, for a `Dataset`: the processes it acts on.

        Examples
        --------
        >>> Systematic.norm("xs", {"ttbar": 0.06, "W": (-0.3, 0.6)})
        Systematic(xs: norm on ttbar, W, up and down)
        """
        if (where is not None) + (processes is not None) + isinstance(size, Mapping) > 1:
            raise DataError(
                f"systematic {name}: where marks rows of one table, processes and sizes by process name samples; "
                "give one of them"
            )
        if isinstance(processes, str):
            raise DataError(f"systematic {name}: processes={processes!r}: a list of names is needed")
        sizes = size if isinstance(size, Mapping) else dict.fromkeys([""] if processes is None else processes, size)
        try:
            changes = {process: relative_changes(one) for process, one in sizes.items()}
        except DataError as error:
            raise DataError(f"systematic {name}: {error}") from None
        if processes is None and not isinstance(size, Mapping):
            up, down = changes[""]
            return FlatSystematic(name, Kind.NORM, (up, where), (down, where))
        sides = [{process: Scaling(both[i]) for process, both in changes.items()} for i in (0, 1)]
        return cls(name, Kind.NORM, sides[0], sides[1])

    @staticmethod
    def check_size(size: Size) -> Size:
        """Return a size that `norm` takes; refuse any other."""
        relative_changes(size)
        return size

    @classmethod
    def join(cls, sources: Sequence[Systematic]) -> Systematic:
        """Make one source of several with the same name that act on different processes, whatever their kinds.

        A source may so be a shape for one process and a normalisation for another. Where one of them is one-sided, all
        are: only normalisations that are the same in both directions can join it.

        Examples
        --------
        >>> weight = Systematic.weight("tag", {"ttbar": [1.1, 0.9]}, {"ttbar": [0.9, 1.1]})
        >>> Systematic.join([weight, Systematic.norm("tag", 0.1, processes=["W"])])
        Systematic(tag: weight on ttbar, W, up and down)
        """
        first, *others = sources
        for one in others:
            if one.name != first.name or set(one.processes) & {p for s in sources if s is not one for p in s.processes}:
                raise DataError(f"systematic {first.name}: only sources of one name and different processes are joined")
        one_sided = [source for source in sources if not source.two_sided]
        for source in sources if one_sided else ():
            if source.two_sided and not source.is_symmetric_norm:
                raise DataError(f"systematic {first.name}: one-sided on {', '.join(one_sided[0].processes)} only")
        kind = cls.join_kinds([source.kind for source in sources])
        sides = [{p: v for s in sources for p, v in dict(s.directions).get(way, {}).items()} for way in ("up", "down")]
        return cls(first.name, kind, sides[0], None if one_sided else sides[1])

    @staticmethod
    def join_kinds(kinds: Sequence[Kind]) -> Kind:
        """Kind of a source that has several: the one that says most about its events."""
        return next(kind for kind in (Kind.SHAPE, Kind.WEIGHT, Kind.NORM) if kind in kinds)

    def map_tables(self, change: Callable[..., LabelledTable]) -> Systematic:
        """Return the source as it is: its events are bound, only a `FlatSystematic` has tables."""
        return self

    @property
    def is_symmetric_norm(self) -> bool:
        """Whether it only scales yields, by the same size up and down."""
        sides = [{p: v.relative_size for p, v in effect.items()} for _, effect in self.directions]
        return all(None not in side.values() for side in sides) and all(
            size == -(sides[-1][process] or 0.0) for process, size in sides[0].items()
        )

    def __repr__(self) -> str:
        sides = "up and down" if self.two_sided else "up only"
        return f"Systematic({self.name}: {self.kind} on {', '.join(self.processes)}, {sides})"


def _reweightings(name: str, sides: Mapping[str, ArrayLike]) -> dict[str, Variation]:
    return {process: Reweighting(check_weights(name, weight)) for process, weight in sides.items()}


def _require_alike(name: str, up: Any, down: Any) -> None:
    if down is not None and isinstance(up, Mapping) != isinstance(down, Mapping):
        raise DataError(f"systematic {name}: up and down must both be arrays, or both name processes")
