"""`qbdt cite` prints what CITATION.cff says."""

import re
from importlib.metadata import version
from pathlib import Path

import yaml
from typer.testing import CliRunner

from qbdt.cli.app import app

CITATION = Path(__file__).parents[2] / "CITATION.cff"


def test_cite_prints_the_software_and_the_paper():
    done = CliRunner().invoke(app, ["cite"])
    assert done.exit_code == 0
    software, article = done.output.strip().split("\n\n")
    assert software.startswith("@software{qbdt,\n  author = {{The qbdt developers}},\n  title = {{qbdt}},\n")
    assert f"  version = {{{version('qbdt')}}},\n" in software
    assert "  author = {Xia, Li-Gang},\n" in article
    paper = yaml.safe_load(CITATION.read_text(encoding="utf-8"))["preferred-citation"]
    assert f"  title = {{{{{paper['title']}}}}},\n" in article
    for entry in (software, article):
        assert re.fullmatch(r"@\w+\{[\w-]+,\n(  \w+ = \{.+\},\n)+\}", entry)
