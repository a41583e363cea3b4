"""`JointEnd`: the common end of the sums of trees of all inner folds.

Folds report results on their held-out events after some numbers of trees. A fold alone has few events, so its own rule
lets it grow long; all folds together show earlier that more trees gain nothing. The decision depends only on results up
to some number of trees, and trees beyond the end are never used. So results do not depend on which fold was ahead, nor
on whether folds grow one after the other, where only the last can end early.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

Found = TypeVar("Found")


class JointEnd(Generic[Found]):
    """Results of each fold so far, and whether no fold needs more trees.

    Parameters
    ----------
    n_folds
        Number of folds.
    is_end
        Decides whether a number of trees is the end, from the results of each fold up to that number (of a fold that
        grows no more, from its last results).
    finished
        Results of folds in an earlier training.
    """

    def __init__(
        self,
        n_folds: int,
        is_end: Callable[[Sequence[Found], int], bool],
        finished: Mapping[int, Found] | None = None,
    ) -> None:
        self.is_over = False
        self._is_end = is_end
        self._found = dict(finished or {})
        self._numbers = [math.inf if fold in self._found else 0 for fold in range(n_folds)]
        self._lock = threading.Lock()

    def report(self, fold: int, found: Found, number: float = math.inf) -> None:
        """Take the results of a fold up to some number of trees, or up to its last tree."""
        with self._lock:
            before = min(self._numbers)
            self._found[fold], self._numbers[fold] = found, number
            common = min(self._numbers)
            if before < common < math.inf and not self.is_over:
                self.is_over = self._is_end([self._found[i] for i in range(len(self._numbers))], int(common))
