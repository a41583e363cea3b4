"""`PartedRows`: rows of a training in several partitions, here or on other machines; `PartedStore` with its weights.

It asks as seldom as it can, because every question is a round trip or a pass over a disk: what changes rows waits until
something is asked, and travels with the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Fixed, Floats
from qbdt.training.paper.weight_scaling import Balance
from qbdt.training.partitions.calls import Call, Hosts, Together
from qbdt.trees import Layout

__all__ = ["PartedRows", "PartedStore"]


class PartedRows:
    """Rows of a training in several partitions, and the nodes they are in.

    Parameters
    ----------
    hosts
        What holds them.
    """

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._waiting: list[Call] = []
        self._histograms: dict[int, Fixed] = {}
        self._sizes: dict[int, int] = {}
        self._siblings: dict[int, tuple[int, int, int]] = {}
        self._n_nodes = 1

    def histogram(self, node: int) -> Fixed:
        """Sums over a node's rows for every feature and bin."""
        self._know(node)
        return self._histograms[node].copy()

    def details(self, node: int, words: Fixed) -> Fixed:
        """Sums of all other weights of a node for some words, one row each."""
        return self._ask(Call("details", (node, words), Together.SUM))[0]

    def size(self, node: int) -> int:
        """Number of rows in a node."""
        self._know(node)
        return self._sizes[node]

    def split(self, node: int, feature: int, goes_right: NDArray[np.uint8]) -> tuple[int, int]:
        """Divide a node and number its children; their histograms come when one of them is asked for."""
        left, right = self._n_nodes, self._n_nodes + 1
        self._n_nodes += 2
        self._siblings[left] = self._siblings[right] = (node, left, right)
        self._tell("split", node, feature, goes_right)
        return left, right

    def _begin(self, *calls: Call) -> list[Fixed]:
        """Begin a tree by some calls, and bring the histogram of its root along."""
        self._histograms.clear()
        self._sizes.clear()
        self._siblings.clear()
        self._n_nodes = 1
        *answers, sizes, self._histograms[0] = self._ask(
            *calls, Call("sizes", ((0,),), Together.SUM), Call("histogram", (0,), Together.SUM)
        )
        self._sizes[0] = int(sizes[0])
        return answers

    def _know(self, node: int) -> None:
        """Learn sizes and histograms of a node and its sibling, where they are not known."""
        if node in self._histograms:
            return
        parent, left, right = self._siblings[node]
        whole = self._histograms.pop(parent)
        sizes, self._histograms[left] = self._ask(
            Call("sizes", ((left, right),), Together.SUM), Call("histogram", (left,), Together.SUM)
        )
        self._histograms[right] = whole - self._histograms[left]
        self._sizes[left], self._sizes[right] = (int(size) for size in sizes)

    def _tell(self, method: str, *arguments: Any, begins: bool = False) -> None:
        """Have the rows changed, when something is asked next."""
        self._waiting.append(Call(method, arguments, changes=True, begins=begins))

    def _ask(self, *calls: Call) -> list[Fixed]:
        """Send what waits and these calls; return the answers of these."""
        sent = [*self._waiting, *calls]
        self._waiting = []
        answers = self._hosts.run(sent)[-len(calls) :]
        return [np.array(answer) for answer in answers]  # what travelled may be read-only, or be kept elsewhere


class PartedStore(PartedRows):
    """Rows with the paper's weights in several partitions.

    Parameters
    ----------
    hosts
        What holds them.
    layout
        Where channels are in histograms; it may be that of no rows.
    """

    def __init__(self, hosts: Hosts, layout: Layout) -> None:
        super().__init__(hosts)
        self.layout = layout
        self._found: Floats = np.zeros(2)
        self._balance = Balance(self)

    @property
    def units(self) -> tuple[float, float]:
        """Value of one unit of a boosted column and of a squared weight in this tree."""
        return self._balance.units

    def start_tree(self, seed: int = 0, fraction: float = 1.0) -> None:
        """Fix the weights of the next tree; node 0 holds all rows."""
        self._balance.start_tree(self, seed, fraction)

    def boost(self, leaves: Sequence[int], factors: Floats) -> None:
        """Multiply the weights of each leaf's rows by its factors (one row per leaf: signal, background)."""
        self._tell("multiply", tuple(leaves), self._balance.kept_small(factors))

    def count_weights(self) -> Fixed:
        """Return how many weights each side has."""
        return self._ask(Call("count_weights", (), Together.SUM))[0]

    def largest_weights(self) -> Floats:
        """Return the largest absolute weight of each side."""
        return self._ask(Call("largest_weights", (), Together.MAX))[0].astype(np.float64)

    def rescale(self, factors: Floats) -> None:
        """Multiply all weights of each side."""
        self._tell("rescale", factors)

    def largest_columns(self) -> Floats:
        """Return the largest further column and the largest weight whose square is one."""
        return self._ask(Call("largest_columns", (), Together.MAX))[0].astype(np.float64)

    def largest_quantised(self) -> Floats:
        """Return the largest column and square of this tree; they came with the sums of its weights."""
        return self._found

    def quantise(self, units: tuple[float, float], seed: int, threshold: int) -> Fixed:
        """Begin a tree, and bring the histogram of its root along."""
        sums, found = self._begin(
            Call("quantise", (units, seed, threshold), Together.SUM, changes=True, begins=True),
            Call("largest_quantised", (), Together.MAX),
        )
        self._found = found.astype(np.float64)
        return sums
