"""Trials of one command, in a process that was started with the shim: each in a child of its own, which is cheap.

`LD_PRELOAD=shim.so python -m tests.faults.trials SHIM CASE EVERY` prints a JSON record for each trial.
"""

import contextlib
import ctypes
import errno
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.cli.inside import qbdt
from tests.faults.cases import CASES, write_inputs
from tests.faults.shortcuts import take_shortcuts

KILL, SHORT, TORN = -1, -2, -3

FAULTS: dict[str, tuple[tuple[str, int, bool], ...]] = {
    "open": (("EACCES", errno.EACCES, False), ("ENOSPC", errno.ENOSPC, True), ("SIGKILL", KILL, False)),
    "write": (
        ("ENOSPC", errno.ENOSPC, True),
        ("EIO", errno.EIO, False),
        ("short write", SHORT, False),
        ("SIGKILL within", TORN, False),
    ),
    "pwrite": (("ENOSPC", errno.ENOSPC, True), ("EIO", errno.EIO, False), ("SIGKILL", KILL, False)),
    "writev": (("ENOSPC", errno.ENOSPC, True), ("EIO", errno.EIO, False), ("SIGKILL", KILL, False)),
    "fsync": (("EIO", errno.EIO, False), ("SIGKILL", KILL, False)),
    "rename": (("EIO", errno.EIO, False), ("SIGKILL", KILL, False)),
    "allocate": (("ENOSPC", errno.ENOSPC, False), ("SIGKILL", KILL, False)),
    "exchange": (("EINVAL", errno.EINVAL, False), ("SIGKILL", KILL, False)),
}
"""Name, kind and whether it stays, of the faults that each operation meets."""

OTHERS = (("EACCES", errno.EACCES, False), ("SIGKILL", KILL, False))
"""The same for operations on folders and names."""

GROWING = ("run.json", "model.qbdt", "m.qbdt", "study.db", "study.db-journal", "settings.json")
"""Files that a command writes several times, whole each time: what they hold in between is allowed."""

TIMED = ("study.db", "study.db-journal")
"""Files that say when something was done, and are never the same."""


@dataclass(frozen=True)
class Trial:
    """A fault at one operation, and what is wrong with what came of it; nothing where `wrong` is empty."""

    case: str
    number: int
    operation: str
    fault: str
    exit: int
    wrong: str = ""


class Trials:
    """Runs a command in a folder, over and over, from the same start."""

    def __init__(self, case: str, shim: Path, folder: Path) -> None:
        self._name, self._case = case, CASES[case]
        self._shim = ctypes.CDLL(str(shim))
        self._shim.faults_name.restype = ctypes.c_char_p
        self._start, self._place = folder / "start", folder / "place"
        self._start.mkdir()
        write_inputs(self._start)
        self._restore()
        for words in self._case.before:
            done = qbdt(*words, cwd=self._place)
            assert done.returncode == 0, done.stderr
        shutil.rmtree(self._start)
        shutil.copytree(self._place, self._start)
        self._before = read_tree(self._start)
        qbdt(*self._case.words, cwd=self._place)  # children need not import or compile anything
        self._restore()
        self.operations = self._run(self._case.words)["operations"]
        self._wanted = read_tree(self._place)
        gc.freeze()  # children then copy fewer pages

    def try_all(self, every: int, first: int) -> None:
        """Try faults at one operation in so many, from the first on.

        With every operation, the first of several of one kind meets all faults, and those that follow it one in turn;
        or all of them one in turn, where the case says so.
        """
        met = Counter(self.operations[:first])
        for number in range(first, len(self.operations), every):
            operation = self.operations[number]
            faults = FAULTS.get(operation, OTHERS)
            follows = number > 0 and self.operations[number - 1] == operation
            if every > 1 or follows or self._case.in_turn:
                faults = (faults[met[operation] % len(faults)],)
            met[operation] += 1
            for fault in faults:
                print(json.dumps(asdict(self._try(number, operation, fault))), flush=True)

    def _try(self, number: int, operation: str, fault: tuple[str, int, bool]) -> Trial:
        self._restore()
        done = self._run(self._case.words, number, fault[1], fault[2])
        wrong = self._judge(done)
        if not wrong and done["exit"] != 0:
            again = self._run((*self._case.words, *self._case.again))
            wrong = f"again: {again['error']}" if again["exit"] else self._compare("again: ")
        return Trial(self._name, number, operation, fault[0], done["exit"], wrong)

    def _judge(self, done: dict[str, Any]) -> str:
        """What is wrong after the fault."""
        if done["exit"] == 0:
            return self._compare("exit 0: ")
        killed = done["exit"] == -signal.SIGKILL
        if not killed and (done["exit"] != 2 or "qbdt: " not in done["error"] or "Traceback" in done["error"]):
            return f"exit {done['exit']}: {done['error'][-600:]}"
        present, whole = read_tree(self._place), {*self._before.values(), *self._wanted.values()}
        half = [name for name, content in present.items() if content not in whole and Path(name).name not in GROWING]
        if half:
            return f"half written: {half[0]}"
        kept = set(present.values())  # also under another name: an earlier fit is set aside
        lost = [name for name, content in self._before.items() if name not in present and content not in kept]
        return f"lost: {lost[0]}" if lost else ""

    def _compare(self, when: str) -> str:
        found = read_tree(self._place)
        names = {name for name in (*found, *self._wanted) if Path(name).name not in TIMED}
        differing = sorted(name for name in names if found.get(name) != self._wanted.get(name))
        return f"{when}{differing[0]} differs" if differing else ""

    def _restore(self) -> None:
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(self._start, self._place)

    def _run(self, words: tuple[str, ...], at: int = -1, kind: int = 0, stays: bool = False) -> dict[str, Any]:
        """Run a command line in a child; returns its exit code, its message and its operations."""
        with tempfile.TemporaryFile("w+") as answer:
            child = os.fork()
            if child == 0:
                with contextlib.suppress(BaseException):
                    self._shim.faults_arm(str(self._place).encode(), at, kind, int(stays))
                    done = qbdt(*words, cwd=self._place)
                    operations = [self._shim.faults_name(i).decode() for i in range(self._shim.faults_count())]
                    self._shim.faults_arm(b"", -1, 0, 0)
                    json.dump({"exit": done.returncode, "error": done.stderr, "operations": operations}, answer)
                    answer.flush()
                os._exit(0)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            answer.seek(0)
            text = answer.read()
            return json.loads(text) if text else {"exit": status or 1, "error": "no answer", "operations": []}


def read_tree(folder: Path) -> dict[str, bytes]:
    """Content of all files, but for locks and for scratch files that a killed process left."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_file() and ".unfinished" not in name and path.name != ".lock":
            found[name] = path.read_bytes()
    return found


def main() -> None:
    """Try one case."""
    take_shortcuts()
    shim, case, every, first = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(case, shim, Path(folder).resolve())
        print(json.dumps({"case": case, "operations": trials.operations}), flush=True)
        trials.try_all(every, first)
        print(json.dumps({"done": True}), flush=True)


if __name__ == "__main__":
    main()
