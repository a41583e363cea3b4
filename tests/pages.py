"""Runs the code of a Markdown page as a reader would: its blocks in order, in an empty folder.

| block | what happens |
|---|---|
| `python` | executed; all blocks of a page share their names |
| `pycon` | executed as a doctest, output compared |
| `console` | lines after `$` go to bash, or to qbdt; what stands below one is compared with its output |
| `yaml` or `cpp`, `title="FILE"` | written to FILE |
| others | for reading only |

Output is compared without regard to white space; `...` stands for anything. With a message that begins with `qbdt:`
the exit code is 2, otherwise 0. A block below `<!-- not run: why -->` is left alone. In a console block below
`<!-- roughly: why -->` numbers may differ by a fifth. Code in `<!-- run ... -->` is executed and not shown.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from tests.cli.inside import qbdt

__all__ = ["Block", "blocks", "run_page"]

FENCE = re.compile(
    r"(?:^<!-- (?P<mark>not run|roughly): [^\n]+ -->\n)?^```(?P<language>\w*)(?P<rest>[^\n]*)\n(?P<code>.*?)^```$"
    r"|^<!-- run\n(?P<hidden>.*?)^-->$",
    re.DOTALL | re.MULTILINE,
)
TITLE = re.compile(r'title="([^"]+)"')
OMITTED = re.compile(r"\s*^\.\.\.$\s*", re.MULTILINE)
"""A line of its own that stands for any number of lines, also none."""
OF_THE_MACHINE = re.compile(r"^(\w+: [\d,]+ of [\d,]+ \(\d+%\), .*|training takes about .*)\n", re.MULTILINE)
"""What differs between machines: how far work that takes long is, and what it was expected to take."""
NUMBER = re.compile(r"[-+]?\d+\.\d+")
ALONE = re.compile(r"qbdt [^|<>;&$*?`]+")
"""A command line that needs no shell."""
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """One block of code and where it stands."""

    line: int
    language: str
    title: str | None
    code: str
    skipped: bool = False
    roughly: bool = False


def blocks(text: str) -> Iterator[Block]:
    """Blocks of a page, in order."""
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["hidden"] is not None:
            yield Block(line, "python", None, match["hidden"])
            continue
        title = TITLE.search(match["rest"])
        mark = match["mark"]
        yield Block(
            line, match["language"], title and title[1], match["code"], mark == "not run", roughly=mark == "roughly"
        )


def run_page(path: Path, folder: Path) -> int:
    """Run a page in a folder, raising where it does not do as it says; returns the number of blocks that were run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    done = 0
    with contextlib.chdir(folder):
        for block in blocks(path.read_text(encoding="utf-8")):
            where = f"{path.name}:{block.line}"
            if block.skipped:
                continue
            done += 1
            match block.language:
                case "python":
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compile("\n" * block.line + block.code, str(path), "exec"), names)
                case "pycon":
                    _doctest(block.code, names, where)
                case "console":
                    _console(block, where)
                case "yaml" | "cpp" if block.title:
                    target = Path(block.title)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(block.code, encoding="utf-8")
                case _:
                    done -= 1
    return done


def _doctest(code: str, names: dict[str, Any], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(code, names, where, where, 0)
    said = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=LENIENT)
    runner.run(test, out=said.write, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, said.getvalue()


def _console(block: Block, where: str) -> None:
    for command, expected in _commands(block.code):
        code, output = _run(command)
        output, expected = (OF_THE_MACHINE.sub("", text) for text in (output, expected))
        wanted = 2 if expected.startswith("qbdt:") else 0
        assert code == wanted, f"{where}: {command}: exit code {code}\n{output}"
        if expected:
            same = _roughly_same if block.roughly else _same
            assert same(OMITTED.sub("...", expected), output), (
                f"{where}: {command}: expected\n{expected}\ngot\n{output}"
            )


def _run(command: str) -> tuple[int, str]:
    """Exit code and output of a command; qbdt alone runs in this process, which has done its imports."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "130",
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
    with mock.patch.dict(os.environ, environment):
        if ALONE.fullmatch(command):
            here = qbdt(*shlex.split(command)[1:], joined=True)
            return here.returncode, here.stdout
        there = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )
    return there.returncode, there.stdout


def _same(expected: str, output: str) -> bool:
    return doctest.OutputChecker().check_output(expected, output, LENIENT)


def _roughly_same(expected: str, output: str) -> bool:
    """Whether the words are the same and every number is right to a fifth."""
    numbers = [float(number) for number in NUMBER.findall(expected)]
    pattern = re.escape(" ".join(NUMBER.sub("@", expected).split()))
    pattern = pattern.replace(r"\.\.\.", ".*?").replace("@", f"({NUMBER.pattern})")
    found = re.fullmatch(pattern, " ".join(output.split()), re.DOTALL)
    if not found:
        return False
    pairs = zip(numbers, map(float, found.groups()), strict=True)
    return all(abs(got - wanted) <= 0.2 * abs(wanted) for wanted, got in pairs)


def _commands(code: str) -> Iterator[tuple[str, str]]:
    """Commands of a console block, each with the output that stands below it."""
    command, output = "", ""
    for line in code.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:], ""
        elif command.endswith("\\"):
            command = f"{command[:-1]} {line.strip()}"
        else:
            output += f"{line}\n"
    if command:
        yield command, output
