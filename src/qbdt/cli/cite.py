"""The command that prints how to cite the package: BibTeX made from the CITATION.cff that is installed with it."""

from __future__ import annotations

from importlib.metadata import distribution
from typing import Any

import typer
import yaml

from qbdt.cli.app import app
from qbdt.errors import QBDTError


@app.command(epilog="Example:  qbdt cite > references.bib")
def cite() -> None:
    """Print BibTeX entries of the package and of the paper whose method it implements."""
    typer.echo("\n\n".join(_bibtex_entries(_read_citation())))


def _read_citation() -> dict[str, Any]:
    text = distribution("qbdt").read_text("licenses/CITATION.cff")
    if text is None:
        raise QBDTError("CITATION.cff is not part of this installation; install qbdt again")
    return dict(yaml.safe_load(text))


def _bibtex_entries(citation: dict[str, Any]) -> list[str]:
    """Entries of the software, with the installed version, and of the article it asks to be cited."""
    software = {**citation, "version": distribution("qbdt").version}
    return [_bibtex("software", "qbdt", software), _bibtex("article", "qbdt-method", citation["preferred-citation"])]


def _bibtex(kind: str, key: str, entry: dict[str, Any]) -> str:
    fields = {"author": " and ".join(_bibtex_name(a) for a in entry["authors"]), "title": f"{{{entry['title']}}}"}
    fields |= {
        name: str(entry[name]) for name in ("journal", "volume", "year", "version", "doi", "url") if name in entry
    }
    if "start" in entry:
        fields["pages"] = f"{entry['start']}--{entry['end']}"
    lines = "".join(f"  {name} = {{{' '.join(value.split())}}},\n" for name, value in fields.items())
    return f"@{kind}{{{key},\n{lines}}}"


def _bibtex_name(author: dict[str, str]) -> str:
    """A person as family name, given names; a group in braces, so that BibTeX does not take it apart."""
    if "name" in author:
        return f"{{{author['name']}}}"
    return f"{author['family-names']}, {author['given-names']}"
