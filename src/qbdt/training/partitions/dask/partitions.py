"""`OnCluster`: a training whose partitions live on Dask workers, and outlives the loss of some of them.

A worker's partitions are behind one Dask actor. The driver sends each step to a few of them, which pass it on to
others and add up the answers: a tree, so that no machine talks to all. Where a worker is lost, its partitions are read
again elsewhere and repeat what has changed the rows since the beginning; the step is then repeated, and those that had
made it already only repeat their answers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

from qbdt.data import Dataset
from qbdt.errors import ClusterError, DataError
from qbdt.threads import Workers
from qbdt.training.partitions.calls import Answers, Call, added
from qbdt.training.partitions.dask.cluster import gone
from qbdt.training.partitions.dask.merging import FAN_IN, over_parts
from qbdt.training.partitions.dask.resident import Below, Reply, Resident, show_tree, size_of_answers, size_of_calls
from qbdt.training.partitions.dask.traffic import Traffic
from qbdt.training.partitions.partition import Builder, EventsInParts, Part, PartHosts

__all__ = ["OnCluster"]

Found = TypeVar("Found")

LOGGER = logging.getLogger("qbdt")

PATIENCE = 60.0
"""Seconds to wait for a worker where there is none."""

ATTEMPTS = 8
"""How often a step is tried; each time workers may have been lost."""


LOOK_AROUND = 1.0
"""Seconds after which a worker that has not answered is looked for."""


@dataclass(frozen=True, eq=False)
class OnCluster(EventsInParts):
    """Events on the workers of a Dask cluster, for `qbdt.training.methods.train`.

    Parameters
    ----------
    parts, folds
        As for `EventsInParts`; parts are read on the workers.
    client
        Dask client.
    traffic
        Filled with what the communication costs.
    fan_in
        Workers that one worker passes calls on to.
    """

    client: Any = None
    traffic: Traffic = field(default_factory=Traffic)
    fan_in: int = FAN_IN

    def hosts(self, workers: Workers) -> PartHosts:
        """Return what keeps the parts on the cluster's workers."""
        return _Cluster(self.client, self.parts, self.traffic, self.fan_in)


class _Lost(Exception):
    """A worker did not answer."""


def _found(number: int, dataset: Dataset, find: Callable[[int, Dataset, Workers], Found]) -> Found:
    with Workers(1) as workers:
        return find(number, dataset, workers)


class _Cluster:
    """Partitions on workers."""

    def __init__(self, client: Any, parts: Sequence[Part], traffic: Traffic, fan_in: int) -> None:
        self._client, self._parts, self._traffic, self._fan_in = client, parts, traffic, fan_in
        self._label = uuid4().hex[:8]
        self._residents: dict[str, Any] = {}
        self._held: dict[str, list[int]] = {}
        self._build: Builder | None = None
        self._history: list[Call] = []
        self._step = 0
        self._shown: list[Any] = []

    def over(
        self, find: Callable[[int, Dataset, Workers], Found], merge: Callable[[Found, Found], Found], name: str
    ) -> Found:
        """Pass over all parts where they are."""
        return over_parts(self._client, self._parts, partial(_found, find=find), merge, name)

    def build(self, build: Builder) -> None:
        """Bin all parts on the workers; the rows of an earlier build are given up first."""
        self._build, self._history, self._held = build, [], {}
        self._step += 1
        for address in list(self._residents):
            with suppress(_Lost):
                self._answer(self._asked(address, "clear"), [address])
        self._place(range(len(self._parts)))
        self._residents = {address: one for address, one in self._residents.items() if address in self._held}

    def run(self, calls: Sequence[Call]) -> Answers:
        """Make calls on all partitions; the answers are the same whatever happens to workers meanwhile."""
        self._step += 1
        for _ in range(ATTEMPTS):
            try:
                answers = self._sent(calls)
            except _Lost as lost:
                reason = str(lost)
                LOGGER.warning("after %d trees: %s", self._traffic.trees, reason)
                self._recover()
            else:
                self._note(calls)
                return answers
        raise ClusterError(f"gave up after {ATTEMPTS} attempts to repeat a step of the training: {reason}")

    def _note(self, calls: Sequence[Call]) -> None:
        """Keep what a lost partition would have to repeat; weights of finished trees need not be fixed again."""
        for call in calls:
            if call.begins:
                again = Call("forget_nodes", changes=True)
                self._history = [again if one.begins else one for one in self._history]
                self._traffic.trees += 1
                self._show()
            self._traffic.splits += call.method == "split"
            if call.changes:
                self._history.append(call)

    def _show(self) -> None:
        """Have a small task with the number of the tree that has begun run somewhere, for who looks at the dashboard.

        The work itself is in calls to actors, which Dask does not show. Nobody waits for these tasks.
        """
        traffic = self._traffic
        if self._client.status == "running":
            key = f"qbdt-tree-{traffic.trees}-{self._label}"
            told = {"tree": traffic.trees, "computing": traffic.computing, "waiting": traffic.waiting}
            self._shown.append(self._client.submit(show_tree, told, key=key, pure=False))

    def _sent(self, calls: Sequence[Call]) -> Answers:
        begin = time.perf_counter()
        tops = self._tree()
        waiting = [self._asked(one.address, "run", self._step, calls, one.below) for one in tops]
        replies: list[Reply] = [self._answer(future, self._residents) for future in waiting]
        found = sum(reply.partitions for reply in replies)
        if found != len(self._parts):
            raise _Lost(f"{len(self._parts) - found} partitions have no worker")
        own = size_of_calls(calls) * len(tops)
        received = sum(size_of_answers(reply.answers) for reply in replies)
        together: Answers | None = None
        for reply in replies:
            together = added(calls, together, reply.answers)
        assert together is not None
        computing = max(reply.computing for reply in replies)
        traffic = self._traffic
        traffic.trips += 1
        traffic.sent += own + sum(reply.sent for reply in replies)
        traffic.received += received + sum(reply.received for reply in replies)
        traffic.computing += computing
        traffic.waiting += time.perf_counter() - begin - computing
        return together

    def _tree(self) -> list[Below]:
        """Residents as trees: the driver talks to at most `fan_in`, and so does each of them."""

        def below(addresses: list[str]) -> list[Below]:
            shares = [addresses[i :: self._fan_in] for i in range(min(self._fan_in, len(addresses)))]
            return [Below(share[0], self._residents[share[0]].key, tuple(below(share[1:]))) for share in shares]

        return below(sorted(self._residents))

    def _asked(self, address: str, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self._residents[address], method)(*arguments)
        except ValueError as error:
            raise _Lost(str(error)) from None

    def _answer(self, future: Any, addresses: Iterable[str]) -> Any:
        """Wait for an answer, and look from time to time whether those asked are still there."""
        while True:
            try:
                return future.result(timeout=LOOK_AROUND)
            except TimeoutError:
                absent = set(addresses) - set(self._live())
                if absent:
                    raise _Lost(f"worker {', '.join(sorted(absent))} is gone") from None
            except (OSError, ValueError, KeyError) as error:
                if isinstance(error, DataError):
                    raise
                raise _Lost(f"a worker does not answer ({error})") from None

    def _live(self) -> dict[str, int]:
        """Addresses of the workers, and their threads."""
        if self._client.status != "running":
            raise ClusterError(gone(self._client))
        try:
            return dict(self._client.nthreads())
        except (OSError, TimeoutError, AttributeError) as error:
            raise ClusterError(gone(self._client)) from error

    def _recover(self) -> None:
        """Give the partitions of lost workers to others."""
        lost = [address for address in self._held if not self._is_there(address)]
        numbers = [number for address in lost for number in self._held.pop(address)]
        for address in lost:
            self._residents.pop(address, None)
        self._traffic.rebuilt += len(numbers)
        if numbers:
            LOGGER.warning("partitions %s are made anew", ", ".join(map(str, numbers)))
            self._place(numbers)
        else:
            time.sleep(LOOK_AROUND / 10)

    def _is_there(self, address: str) -> bool:
        if address not in self._residents or address not in self._live():
            return False
        try:
            held = self._answer(self._asked(address, "held"), [address])
        except _Lost:
            return False
        return set(held) == set(self._held[address])

    def _place(self, numbers: Sequence[int]) -> None:
        """Have partitions made where fewest are; a worker that is lost meanwhile is found by the next step."""
        live = self._wait_for_workers()
        share: dict[str, list[int]] = {address: [] for address in sorted(live)}
        for number in numbers:
            least = min(share, key=lambda a: ((len(self._held.get(a, ())) + len(share[a]) + 1) / live[a], a))
            share[least].append(number)
        begun = []
        for address, mine in share.items():
            if mine:
                self._held.setdefault(address, []).extend(mine)
                with suppress(_Lost):
                    begun.append((address, self._begun(address, live[address], mine)))
        for address, future in begun:
            with suppress(_Lost):
                self._answer(future, [address])

    def _begun(self, address: str, n_threads: int, numbers: list[int]) -> Any:
        if address not in self._residents:
            key = f"qbdt-rows-{self._label}-{uuid4().hex[:8]}"
            made = self._client.submit(Resident, n_threads, actor=True, workers=[address], key=key, pure=False)
            try:
                self._residents[address] = made.result(timeout=PATIENCE)
            except (OSError, ValueError) as error:
                raise _Lost(str(error)) from None
        parts = {number: self._parts[number] for number in numbers}
        return self._asked(address, "build", parts, self._build, self._history)

    def _wait_for_workers(self) -> dict[str, int]:
        end = time.monotonic() + PATIENCE
        while not (live := self._live()):
            if time.monotonic() > end:
                raise ClusterError(f"the cluster has had no workers for {PATIENCE:.0f} s")
            time.sleep(LOOK_AROUND / 10)
        return live
