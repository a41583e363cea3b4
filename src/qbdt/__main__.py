"""What `qbdt` and `python -m qbdt` start: the command line, once its libraries are imported.

Imports take a second. Ctrl-C would meanwhile end in a traceback, or in whatever a library makes of it, so it has a
handler of its own until they are there. What is imported before it, here and in `qbdt/__init__.py`, must be quick.
"""

import os
import signal
import sys


def main() -> None:
    """Import the command line and run it; exit code 130 and one line on Ctrl-C, at any time."""
    _open_standard_streams()
    own = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a job in the background ignores Ctrl-C
    if own:
        signal.signal(signal.SIGINT, _stop)
    from qbdt.cli import main as run

    if own:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _open_standard_streams() -> None:
    """Put the null device where a standard stream is closed: nothing that is opened later may take its place.

    Not even while libraries are imported: libffi keeps its own file open.
    """
    for handle, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the smallest handle that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(handle, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _stop(*_: object) -> None:
    """End at once: nothing has been written yet."""
    try:
        os.write(2, b"qbdt: interrupted\n")
    except OSError:  # standard error is closed
        pass
    finally:
        os._exit(130)


if __name__ == "__main__":
    main()
