"""One input of a target: made from its number, used, and judged."""

import logging
import random
import resource
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from qbdt.errors import QBDTError
from tests.fuzz.targets import TARGETS

MOST_SECONDS, MOST_BYTES = 10.0, 500 * 2**20
"""What an input below 1 MB may take."""


@dataclass(frozen=True)
class Finding:
    """An input that ended in neither success nor an error of qbdt, or took too much; `number` makes it again."""

    target: str
    number: int
    reason: str
    shown: str

    def __str__(self) -> str:
        return f"{self.target} {self.number}: {self.reason}\n  input: {self.shown}"


def make_input(name: str, number: int) -> object:
    """Input of a target: its seeds first, then seeds changed at random, the same for the same number."""
    target = TARGETS[name]
    if number < len(target.seeds):
        return target.seeds[number]
    rng = random.Random(number)
    found = rng.choice(target.seeds)
    for _ in range(rng.choice((1, 1, 2, 4))):
        found = target.change(found, rng)
    return found


def try_input(name: str, number: int) -> Finding | None:
    """Use one input; return what is wrong with the outcome, if anything is.

    Seconds are those of the processor. An input that takes too many is tried again: the first may have compiled.
    """
    given, before = make_input(name, number), _peak()
    reason, seconds = _use(name, given)
    if seconds > MOST_SECONDS:
        reason, seconds = _use(name, given)
    if seconds > MOST_SECONDS:
        reason = f"took {seconds:.0f} s"
    if _peak() - before > MOST_BYTES:
        reason = f"took {(_peak() - before) / 2**20:.0f} MB"
    return None if reason is None else Finding(name, number, reason, repr(given)[:300])


def _use(name: str, given: object) -> tuple[str | None, float]:
    """What is wrong with the outcome, and how long it took."""
    reason, start = None, time.process_time()
    logging.disable()  # pyhf tells its log about what it refuses
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TARGETS[name].use(given, Path(folder))
        except QBDTError:
            pass
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}: {str(error)[:120]}"
    logging.disable(logging.NOTSET)
    return reason, time.process_time() - start


def _peak() -> int:
    """Largest memory of this process so far, in bytes (Linux counts it in kB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
