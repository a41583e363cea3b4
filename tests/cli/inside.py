"""Commands run inside the test's own process, which has done its imports: several times quicker than a new one."""

import contextlib
import io
import sys
from dataclasses import dataclass
from unittest import mock

from qbdt.cli.app import _run


@dataclass(frozen=True)
class Done:
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


def qbdt(*arguments, cwd=".", joined=False):
    """Run a command in a folder; with `joined` its messages are among its output."""
    out = io.StringIO()
    err = out if joined else io.StringIO()
    words = ["qbdt", *map(str, arguments)]
    streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with contextlib.chdir(cwd), mock.patch.object(sys, "argv", words), streams[0], streams[1]:
        code = _run()
    return Done(code, out.getvalue(), "" if joined else err.getvalue())
