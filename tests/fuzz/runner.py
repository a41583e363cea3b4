"""One input of a target: made from its number, used, and judged."""

import logging
import random
import resource
import signal
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from qbdt.errors import QBDTError
from tests.fuzz.targets import TARGETS

MOST_SECONDS, MOST_BYTES = 10.0, 500 * 2**20
"""What an input below 1 MB may take: seconds of the processor, which a busy machine does not stretch."""

HANGS_AFTER = 300
"""Seconds of the clock after which an input that waits for something is taken to wait for ever."""


class Hanging(BaseException):
    """An input that does not end; no code of qbdt catches it."""


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

    Seconds are those of the processor, in this process and those that it started. An input that takes too many is
    tried again: the first may have compiled.
    """
    given, before, most = make_input(name, number), _peak(), MOST_SECONDS * TARGETS[name].times
    reason, seconds = _use(name, given)
    if seconds > most:
        reason, seconds = _use(name, given)
    if seconds > most:
        reason = f"took {seconds:.0f} s"
    if _peak() - before > MOST_BYTES:
        reason = f"took {(_peak() - before) / 2**20:.0f} MB"
    return None if reason is None else Finding(name, number, reason, repr(given)[:300])


def _use(name: str, given: object) -> tuple[str | None, float]:
    """What is wrong with the outcome, and how long it took."""
    reason, start = None, _seconds()
    logging.disable()  # pyhf tells its log about what it refuses
    earlier = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(HANGS_AFTER)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TARGETS[name].use(given, Path(folder))
        except QBDTError:
            pass
        except (Exception, Hanging) as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}: {str(error)[:120]}"
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, earlier)
    logging.disable(logging.NOTSET)
    return reason, _seconds() - start


def _stop(*_: object) -> None:
    raise Hanging(f"no end after {HANGS_AFTER} s")


def _seconds() -> float:
    """Time of the processor that this process and those that it started have taken so far."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def _peak() -> int:
    """Largest memory of this process so far, in bytes (Linux counts it in kB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
