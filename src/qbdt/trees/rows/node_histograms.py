"""Histograms of the nodes of a tree, where a child's is its parent's minus its sibling's."""

from __future__ import annotations

from qbdt.arrays import Fixed


class NodeHistograms:
    """Histograms of the nodes of one tree; of two siblings only one has to be summed over its rows.

    A histogram may have several sections, such as words of eight features, each of which is known or not by itself.

    Examples
    --------
    >>> import numpy as np
    >>> histograms = NodeHistograms()
    >>> histograms.add(0, np.array([3, 5]))
    >>> histograms.note_split(0, 1, 2)
    >>> histograms.add(1, np.array([1, 4]))
    >>> histograms.of(2), histograms.knows(0)
    (array([2, 1]), False)
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Fixed] = {}
        self._family: dict[int, tuple[int, int]] = {}

    def note_split(self, node: int, left: int, right: int) -> None:
        """Take note of the children of a node."""
        self._family |= {left: (node, right), right: (node, left)}

    def family(self, node: int) -> tuple[int, int] | None:
        """Parent and sibling of a node; None for the root."""
        return self._family.get(node)

    def knows(self, node: int, section: int = 0) -> bool:
        """Whether a section of a node's histogram is known."""
        return (node, section) in self._known

    def of(self, node: int, section: int = 0) -> Fixed:
        """Return a section of a node's histogram, which must be known."""
        return self._known[node, section]

    def add(self, node: int, histogram: Fixed, section: int = 0) -> None:
        """Take a histogram summed over rows; where the parent's is known, it becomes the sibling's.

        Sums are 64-bit integers, so the difference is bit by bit what the sibling's rows would give.
        """
        self._known[node, section] = histogram
        family = self._family.get(node)
        if family is not None and (family[0], section) in self._known:
            sibling = self._known.pop((family[0], section))
            sibling -= histogram  # parent − child, in the parent's memory
            self._known[family[1], section] = sibling

    def drop(self, node: int) -> None:
        """Give up the histogram of a node that needs none."""
        self._known.pop((node, 0), None)

    @property
    def n_bytes(self) -> int:
        """Memory in use."""
        return sum(histogram.nbytes for histogram in self._known.values())

    def clear(self) -> None:
        """Give up all histograms; who is whose parent stays known."""
        self._known.clear()
