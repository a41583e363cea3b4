"""When a tree stops growing: the paper's rule, and that of the published program."""

from __future__ import annotations

from typing import Protocol


class Growth(Protocol):
    """Decides which nodes stay leaves. One object serves one tree."""

    lazy: bool
    """Whether a node may wait with an upper bound on ΔQ until it could be the next to be split."""

    def closes_early(self, s: float, q: float) -> bool:
        """Whether a new node stays a leaf whatever its best split is."""

    def closes(self, gain: float) -> bool:
        """Whether a node with this best ΔQ stays a leaf; asked when it is made and again when its turn comes."""

    def note_split(self) -> None:
        """Take note that a node was split."""

    def note_closed(self) -> None:
        """Take note that a node stays a leaf."""


class LeafGrowth:
    """Split until there are `n_leaves` leaves or no split has ΔQ > 0: the paper's algorithm."""

    lazy = True

    def __init__(self, n_leaves: int) -> None:
        self._left = n_leaves - 1

    def closes_early(self, s: float, q: float) -> bool:
        """Close everything once all leaves are used."""
        return self._left == 0

    def closes(self, gain: float) -> bool:
        """Close where nothing is gained, or all leaves are used."""
        return not gain > 0 or self._left == 0

    def note_split(self) -> None:
        """One leaf fewer to come."""
        self._left -= 1

    def note_closed(self) -> None:
        """Closed nodes do not count."""


class PublishedGrowth:
    """The published program's rule: a counter of nodes, +2 for a split and +1 for a closed node, up to 2 · leaves − 4.

    Trees can end with fewer leaves than asked for, because closed nodes use up the count; so whether a node closes must
    be known when it is made.
    """

    lazy = False

    def __init__(self, n_leaves: int) -> None:
        self._limit = 2 * n_leaves - 4
        self._count = 0

    def closes_early(self, s: float, q: float) -> bool:
        """Close nodes without signal or significance, and everything once the counter is past its limit."""
        return s == 0 or q <= 0 or self._count > self._limit

    def closes(self, gain: float) -> bool:
        """Close where Q would fall, or once the counter is past its limit."""
        return not gain >= 0 or self._count > self._limit

    def note_split(self) -> None:
        """Two new nodes."""
        self._count += 2

    def note_closed(self) -> None:
        """One node done."""
        self._count += 1
