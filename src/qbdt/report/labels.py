"""Text and colours of figures: titles of processes, variables and sources, and the line above the axes.

In: labels of an analysis. Out: text that Matplotlib draws; a name without a label is drawn as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from qbdt.report.style import COLOURS, SIGNAL

LIGHTER = 0.5
"""How much of white is in a colour that is used a second time."""


@dataclass(frozen=True)
class Labels:
    r"""How things are called in figures; labels may have formulas between dollar signs.

    Attributes
    ----------
    processes, variables, sources, regions
        Label by name; names that are not in them are drawn as they are.
    colours
        Fill colour by process, as Matplotlib knows colours.
    experiment, status
        Text above the axes on the left: bold, and after it italic, such as "CMS" and "Open Data".
    energy, luminosity
        Centre-of-mass energy in TeV and integrated luminosity in fb⁻¹, above the axes on the right.

    Examples
    --------
    >>> labels = Labels(processes={"higgs": r"$H\to\tau\tau$"}, energy=13, luminosity=80)
    >>> labels.process("higgs"), labels.process("z+jets"), labels.conditions
    ('$H\\to\\tau\\tau$', 'z+jets', '80 fb$^{-1}$ (13 TeV)')
    """

    processes: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    colours: Mapping[str, Any] = field(default_factory=dict)
    experiment: str = ""
    status: str = ""
    energy: float | None = None
    luminosity: float | None = None
    regions: Mapping[str, str] = field(default_factory=dict)

    def process(self, name: str) -> str:
        """Title of a process."""
        return self.processes.get(name) or _literal(name)

    def variable(self, name: str) -> str:
        """Title of a variable, with its unit."""
        return self.variables.get(name) or _literal(name)

    def source(self, name: str) -> str:
        """Title of a systematic source; that of a component is its source's with the component's name."""
        source, _, component = name.partition("#")
        label = self.sources.get(name) or (self.sources.get(source) if component else None)
        return _literal(name) if label is None else f"{label} {component}".rstrip()

    def region(self, name: str) -> str:
        """Title of a region."""
        return self.regions.get(name) or _literal(name)

    @property
    def conditions(self) -> str:
        """Luminosity and energy, as far as they are known."""
        luminosity = "" if self.luminosity is None else f"{self.luminosity:g} fb$^{{-1}}$"
        energy = "" if self.energy is None else f"{self.energy:g} TeV"
        return f"{luminosity} ({energy})" if luminosity and energy else luminosity or energy

    def fill_colours(self, backgrounds: Iterable[str], signals: Iterable[str]) -> dict[str, Any]:
        """Colour of each process: the given one, for others one that no process has."""
        free = [colour for colour in COLOURS if colour not in self.colours.values()] or list(COLOURS)
        found: dict[str, Any] = {name: _take([SIGNAL], place) for place, name in enumerate(signals)}
        rest = [name for name in backgrounds if name not in self.colours]
        found |= {name: _take(free, place) for place, name in enumerate(rest)}
        return found | dict(self.colours)

    @property
    def is_silent(self) -> bool:
        """Whether there is nothing to write above axes."""
        return not (self.experiment or self.status or self.conditions)

    def write_above(self, axes: Any, lift: float = 0.0) -> None:
        """Write experiment, status and conditions above axes, or higher by so many points."""
        if self.is_silent:
            return
        offset = {"textcoords": "offset points", "va": "baseline"}
        name = axes.annotate(_literal(self.experiment), (0, 1), (0, lift + 6), xycoords="axes fraction", **offset)
        name.set(weight="bold", size=14)
        if self.status:
            gap = 5 if self.experiment else 0
            place = (name, "axes fraction")
            axes.annotate(_literal(self.status), (1, 1), (gap, lift + 6), xycoords=place, style="italic", **offset)
        if self.conditions:
            axes.set_title(self.conditions, loc="right", pad=lift + 6)


PLAIN = Labels()
"""Names as they are, and nothing above the axes."""


def _take(colours: list[str], place: int) -> Any:
    """The colour at a place; further rounds are lighter, so that no two processes look the same."""
    from matplotlib.colors import to_rgb

    rounds, index = divmod(place, len(colours))
    light = 1 - LIGHTER**rounds
    return tuple((1 - light) * part + light for part in to_rgb(colours[index])) if rounds else colours[index]


def _literal(name: str) -> str:
    """A name whose dollar signs begin no formula."""
    return name.replace("$", r"\$")
