"""What every command has, found by walking over all of them: a new one cannot forget."""

import errno
import importlib.util
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from qbdt.cli.app import app
from tests.cli.inside import qbdt

WITHOUT_JSON = {"cite": "its output is BibTeX", "schema": "its output is JSON already"}
WITHOUT_FORCE = {
    "cite": "writes nothing",
    "report": "a report may overwrite a report",
    "inspect": "writes nothing",
    "schema": "writes nothing",
    "tune": "continues its own study and refuses that of another analysis",
    "generate tautaugamma": "continues its own folder and refuses that of another sample",
}


def commands():
    """All commands below `qbdt`, by what one types."""

    def below(group, prefix):
        for name, command in group.commands.items():
            typed = f"{prefix} {name}".strip()
            if hasattr(command, "commands"):
                yield from below(command, typed)
            else:
                yield typed, command

    return dict(below(typer.main.get_command(app), ""))


COMMANDS = commands()


def options(command):
    return {option for parameter in command.params for option in parameter.opts}


def example(command):
    found = re.fullmatch(r"Example:  (qbdt .+)", command.epilog or "")
    assert found, f"no example: {command.epilog!r}"
    return found[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example_that_parses(name):
    done = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == 0
    typed = example(COMMANDS[name])
    assert typed in done.output
    words = shlex.split(typed.partition(" > ")[0])
    assert " ".join(words[1:]).startswith(name)
    COMMANDS[name].make_context(name, words[1 + len(name.split()) :])


@pytest.mark.parametrize("name", COMMANDS)
def test_paragraphs_of_help_fill_their_lines(name):
    done = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "80", "TERM": "dumb"})
    lines = done.output.partition("Arguments")[0].partition("Options")[0].splitlines()
    text = [line.strip() for line in lines if "Usage:" not in line]
    for line, following in pairwise(text):
        if line and following and not line.startswith("╭"):
            assert len(f" {line} {following.split()[0]}") > 76, line  # the next word did not fit


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_every_option_is_for(name):
    assert COMMANDS[name].help
    for parameter in COMMANDS[name].params:
        assert getattr(parameter, "help", None), f"{name}: {parameter.name} has no help"


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(WITHOUT_JSON)))
def test_json_and_quiet(name):
    assert {"--json", "--quiet", "-q"} <= options(COMMANDS[name])


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(WITHOUT_FORCE)))
def test_what_writes_asks_before_it_replaces(name):
    assert "--force" in options(COMMANDS[name])


def test_short_options_mean_the_same_everywhere():
    meaning: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for parameter in command.params:
            for short in (option for option in parameter.opts if re.fullmatch("-[a-z]", option)):
                meaning.setdefault(short, set()).add(parameter.name)
    meaning.pop("-j")  # threads of a training, processes of a study: as in make, how much runs at once
    assert {short: names for short, names in meaning.items() if len(names) > 1} == {}


def test_commands_are_listed_in_the_order_of_an_analysis():
    group: Any = typer.main.get_command(app)
    listed = group.list_commands(None)
    assert set(listed) == set(group.commands)
    assert listed.index("init") < listed.index("inspect") < listed.index("run") < listed.index("report")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell):
    done = subprocess.run(
        ["qbdt"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **_completing(shell)},
        executable=Path(sys.executable).with_name("qbdt"),
    )
    assert "inspect" in done.stdout, done.stderr


def _completing(shell):
    if shell == "bash":
        return {"_QBDT_COMPLETE": "complete_bash", "COMP_WORDS": "qbdt ins", "COMP_CWORD": "1"}
    line = {"_TYPER_COMPLETE_ARGS": "qbdt ins", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return {"_QBDT_COMPLETE": f"complete_{shell}", **line}


def test_examples_are_completed():
    environment = {"_QBDT_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "qbdt init --example "}
    program = Path(sys.executable).with_name("qbdt")
    done = subprocess.run([program], capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert "tautaugamma" in done.stdout, done.stderr


def test_exit_codes(tmp_path):
    def exit_code(*arguments):
        return subprocess.run([sys.executable, "-m", "qbdt", *arguments], capture_output=True, check=False).returncode

    assert exit_code("schema") == 0
    assert exit_code("inspect", tmp_path / "absent.yaml") == 2
    assert qbdt("inspect").returncode == 2
    assert qbdt("no-such-command").returncode == 2


STOPPED_WHILE_IMPORTING = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == LIBRARY:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Stop())
sys.argv = ["qbdt", "schema"]
"""
"""Ctrl-C at the moment when a library is about to be imported."""


@pytest.mark.parametrize("library", ["qbdt.cli", "typer", "numpy", "yaml"])
@pytest.mark.parametrize(
    "start", ["from qbdt.__main__ import main; main()", "runpy.run_module('qbdt', run_name='__main__')"]
)
def test_interrupted_while_libraries_are_imported(library, start):
    code = STOPPED_WHILE_IMPORTING.replace("LIBRARY", repr(library)) + start
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "qbdt: interrupted\n")


def test_the_package_imports_nothing_slow_before_it_catches_interrupts():
    code = "import sys, qbdt.__main__; print({'numpy', 'qbdt.data', 'qbdt.errors', 'typer'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_interrupted_is_130(tmp_path):
    code = (
        "import signal, sys, qbdt.data.samples as m\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background ignores it
        "def wait(*a, **k):\n    print('ready', flush=True)\n    import time; time.sleep(60)\n"
        "m.write_bundled_ntuples = wait\n"
        "sys.argv = ['qbdt', 'ntuples', 'x']\n"
        "from qbdt.cli import main; main()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=-1, stderr=-1, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.1)  # the line is printed just before the wait begins
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (130, "qbdt: interrupted\n")


def test_json_never_has_what_json_does_not_know(monkeypatch, capsys):
    from qbdt.cli.app import print_json

    print_json({"a": [float("nan"), 1.5], "b": (float("inf"), "x")})
    assert json.loads(capsys.readouterr().out) == {"a": [None, 1.5], "b": [None, "x"]}


@pytest.mark.parametrize(
    ("message", "printed"),
    [
        ("a.json exists; force=True overwrites it", "a.json exists; --force overwrites it"),
        ("folds=3: give fold_columns=[NAME]", "--folds 3: give --fold-column NAME"),
        ("n_threads=0: must be at least 1", "--threads 0: must be at least 1"),
        ("the modifier has data of length 3", "the modifier has data of length 3"),
        ("divided by ModuloFolds(k=2, column='event')", "divided by ModuloFolds(k=2, column='event')"),
    ],
)
def test_arguments_of_the_library_are_printed_as_options(message, printed):
    from qbdt.cli.app import _with_options

    assert _with_options(message) == printed


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "| head -0"])
def test_closed_streams_are_no_traceback(closed):
    command = f"{sys.executable} -m qbdt --help {closed}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


OPENS_A_FILE = """
import os, sys
class Finder:
    def find_spec(self, name, *_):
        if name == "qbdt.cli":
            os.open(os.devnull, os.O_RDONLY)
sys.meta_path.insert(0, Finder())
sys.argv = ["qbdt", "--version"]
from qbdt.__main__ import main
main()
"""


def test_libraries_that_keep_files_open_do_not_take_the_place_of_closed_streams(tmp_path):
    """So does libffi with a file of its own."""
    (tmp_path / "opens.py").write_text(OPENS_A_FILE)
    command = f"{sys.executable} opens.py >&-"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /dev/full")
def test_messages_to_a_full_disk_are_no_traceback():
    command = f"{sys.executable} -m qbdt fit nowhere.yaml 2> /dev/full"
    assert subprocess.run(["bash", "-c", command], timeout=60, check=False).returncode == 2


@pytest.mark.parametrize("threads", ["0", "-1", "two", "1e3"])
def test_threads_that_numba_cannot_read_are_one_message(threads, monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", threads)
    done = qbdt("fit", "nowhere.yaml")
    assert done.returncode == 2
    assert done.stderr.startswith(f"qbdt: NUMBA_NUM_THREADS={threads}: numba needs a whole number")


def test_backends_of_other_programs_are_not_loaded(tmp_path):
    """A notebook sets one for the commands that it starts, which their environment may not have."""
    inspect = "import os, sys, qbdt.cli.app as app; app.app = lambda **_: print(os.environ['MPLBACKEND']); app.main()"
    environment = {**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    words = [sys.executable, "-c", inspect]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "agg\n"), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit addresses")
def test_too_little_virtual_memory_is_said_before_libraries_fail():
    command = f"ulimit -v 400000; {sys.executable} -m qbdt run a.yaml"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("qbdt: ulimit -v allows 0.41 GB of virtual memory, which is too little")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "limit", "message"),
    [
        (MemoryError(), math.inf, "there is not enough memory"),
        (MemoryError(), 4e9, "ulimit -v allows 4 GB"),
        (ImportError("libarrow.so: failed to map segment"), 4e9, "ulimit -v allows 4 GB"),
        (RuntimeError("can't start new thread"), 4e9, "ulimit -v allows 4 GB"),
    ],
)
def test_too_little_memory_is_one_message(error, limit, message, monkeypatch, capsys):
    module = sys.modules["qbdt.cli.app"]

    def fail(**options):
        raise error

    monkeypatch.setattr(module, "app", fail)
    monkeypatch.setattr(module, "_count_addresses", lambda: limit)
    assert module._run() == 2
    assert capsys.readouterr().err.startswith(f"qbdt: {message}")


def test_a_damaged_cache_of_compiled_functions_is_named(monkeypatch, capsys):
    module = sys.modules["qbdt.cli.app"]

    def read_cache(**options):
        exec(compile("raise EOFError", "/lib/numba/core/caching.py", "exec"))

    monkeypatch.setattr(module, "app", read_cache)
    assert module._run() == 2
    assert "numba's cache of compiled functions is damaged" in capsys.readouterr().err


KERNEL = """\
from numba import njit

@njit(cache=True)
def double(x):
    return 2 * x
"""


def import_kernel(folder):
    """Import a module with one cached kernel, as a new process would."""
    if not (folder / "kernel.py").exists():  # older numba compares times, and compiles what was written again
        (folder / "kernel.py").write_text(KERNEL)
    spec = importlib.util.spec_from_file_location("kernel", folder / "kernel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def kernel_cache(tmp_path, monkeypatch):
    """Return a folder with a kernel and its cache of compiled functions, which commands will use."""
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    import_kernel(tmp_path).double(1)
    command = sys.modules["qbdt.cli.app"]
    monkeypatch.setattr(command, "app", lambda **options: print(import_kernel(tmp_path).double(4)))
    assert command._run() == 0
    return tmp_path


@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[:-9], lambda content: b"x" * 99])
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_cache_that_is_really_damaged_is_named(damage, ending, kernel_cache, capsys):
    for path in (kernel_cache / "cache").rglob(f"*.{ending}"):
        path.write_bytes(damage(path.read_bytes()))
    assert sys.modules["qbdt.cli.app"]._run() == 2
    assert "numba's cache of compiled functions is damaged" in capsys.readouterr().err


def test_a_cache_on_a_full_disk_is_one_message(kernel_cache, capsys, monkeypatch):
    from numba.core import caching

    def open_full(self, path):
        raise OSError(errno.ENOSPC, "No space left on device", path)

    shutil.rmtree(kernel_cache / "cache")
    monkeypatch.setattr(caching.IndexDataCacheFile, "_open_for_write", open_full)
    assert sys.modules["qbdt.cli.app"]._run() == 2
    assert "No space left on device" in capsys.readouterr().err
