"""What a training on a cluster costs besides computing: round trips, bytes, waiting."""

from __future__ import annotations

from dataclasses import dataclass

from qbdt.tables import Table

__all__ = ["Traffic"]


@dataclass
class Traffic:
    """Counted over a training.

    Attributes
    ----------
    trees, splits, trips
        Trees begun, nodes split, and messages that went out to all workers and came back.
    sent, received
        Bytes of arrays to and from workers, over all hops between machines.
    computing
        Seconds in which the slowest worker computed, over all trips.
    waiting
        Seconds of the trips that nobody computed in: communication.
    rebuilt
        Partitions that were built anew after a worker was lost.
    """

    trees: int = 0
    splits: int = 0
    trips: int = 0
    sent: int = 0
    received: int = 0
    computing: float = 0.0
    waiting: float = 0.0
    rebuilt: int = 0

    def tables(self) -> tuple[Table, ...]:
        """Return the counts per tree and per split."""
        trees, splits = max(self.trees, 1), max(self.splits, 1)
        rows = (
            ("trees", f"{self.trees}"),
            ("round trips per tree", f"{self.trips / trees:.1f}"),
            ("workers compute, seconds per tree", f"{self.computing / trees:.4f}"),
            ("communication, seconds per tree", f"{self.waiting / trees:.4f}"),
            ("bytes to workers per split", f"{self.sent / splits:.0f}"),
            ("bytes from workers per split", f"{self.received / splits:.0f}"),
            ("partitions built anew", f"{self.rebuilt}"),
        )
        return (Table("Training on the cluster", ("", "value"), rows),)
