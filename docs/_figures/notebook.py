"""The notebook of the documentation as a page with its outputs: executed once, by `make figures`, and committed."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["write_notebook_page"]

DOCS = Path(__file__).parents[1]
NOTEBOOK, PAGE = DOCS / "notebooks" / "tutorial.ipynb", DOCS / "notebook.md"
SKLEARN = "<details><summary>Parameters</summary>"
"""What scikit-learn adds to a classifier: it comes with a style of its own, which would restyle the page."""
NOT_RUN = "<!-- not run: tests/test_notebooks.py runs the notebook -->"


def write_notebook_page(images: Path) -> Path:
    """Execute the notebook and write its cells and what they show."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    blocks = [block for number, cell in enumerate(notebook.cells) for block in _blocks(cell, number, images)]
    title, *rest = blocks
    download = (
        "*This page is [a notebook](notebooks/tutorial.ipynb) to download, with what it shows; `make figures` runs it.*"
    )
    PAGE.write_text("\n\n".join((title, download, *rest)) + "\n", encoding="utf-8")
    return PAGE


def _blocks(cell: Any, number: int, images: Path) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source.replace("(../", "(")
        return
    yield f"{NOT_RUN}\n```python\n{cell.source}\n```"
    for output in cell.outputs:
        yield from _show(output, images / f"notebook-{number}.png")


def _show(output: Any, picture: Path) -> Iterator[str]:
    """The richest form of an output that a page can hold."""
    if output.output_type == "stream":
        yield f"```\n{output.text.rstrip()}\n```"
    elif "image/png" in output.get("data", {}):
        picture.write_bytes(base64.b64decode(output.data["image/png"]))
        yield f"![Output of the cell above](images/{picture.name})"
    elif "text/html" in output.get("data", {}):
        own, _, _ = output.data["text/html"].partition(SKLEARN)
        content = "\n".join(line for line in own.splitlines() if line.strip())
        yield f'<div class="notebook-output">\n{content}\n</div>'
    elif "text/plain" in output.get("data", {}):
        yield f"```\n{output.data['text/plain']}\n```"
