"""`JointEnd`: sums of trees of all inner folds stop growing where what all of them found so far says so.

Folds report what their held-out events say after some numbers of trees. A fold alone has few events, so its own rule
lets it grow long; all together know earlier that more trees gain nothing. Whether they do is a function of what was
found up to some number of trees, and trees beyond the end are never taken. So results do not depend on which fold was
ahead, nor on whether folds grow one after the other, where only the last can end early.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

Found = TypeVar("Found")


class JointEnd(Generic[Found]):
    """What each fold found so far, and whether no fold needs more trees.

    Parameters
    ----------
    n_folds
        Number of folds.
    is_end
        Says, of what each fold found and a number of trees, whether it is the end: by what was found up to that number,
        or, of a fold that grows no more, by the last before.
    finished
        What folds found in an earlier training.
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
        """Take what a fold found up to some number of trees, or up to the last it grows."""
        with self._lock:
            before = min(self._numbers)
            self._found[fold], self._numbers[fold] = found, number
            common = min(self._numbers)
            if before < common < math.inf and not self.is_over:
                self.is_over = self._is_end([self._found[i] for i in range(len(self._numbers))], int(common))
