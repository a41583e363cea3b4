"""Hooks of .pre-commit-config.yaml with their tools from a package index, where GitHub is not reached.

    python .ci/hooks.py FILE        (nox -s lint -- pypi)

Writes a configuration with the same hooks, settings and releases, each as a local hook of pre-commit. What else a hook
is, its command and the files that it looks at, stands in its repository on GitHub, and is repeated here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

CONFIGURATION = Path(__file__).resolve().parents[1] / ".pre-commit-config.yaml"

PACKAGES = {
    "ruff-pre-commit": "ruff",
    "mirrors-mypy": "mypy",
    "validate-pyproject": "validate-pyproject[all]",
    "zizmor-pre-commit": "zizmor",
    "cookie": "sp-repo-review[cli]",
}
"""Packages on the index, where they are not called as the repository of the hook."""

TEXT, PYTHON, YAML = {"types": ["text"]}, {"types": ["python"]}, {"types": ["yaml"]}
SCHEMA = "check-jsonschema --builtin-schema vendor."
HOOKS: dict[str, dict[str, Any]] = {
    "check-added-large-files": {},
    "check-case-conflict": {},
    "check-merge-conflict": TEXT,
    "check-symlinks": {"types": ["symlink"]},
    "check-toml": {"types": ["toml"]},
    "check-yaml": YAML,
    "debug-statements": {"entry": "debug-statement-hook", **PYTHON},
    "end-of-file-fixer": TEXT,
    "mixed-line-ending": TEXT,
    "trailing-whitespace": {"entry": "trailing-whitespace-fixer", **TEXT},
    "python-check-blanket-noqa": {"language": "pygrep", "entry": "(?i)#[ ]noqa(?!: )", **PYTHON},
    "python-check-blanket-type-ignore": {"language": "pygrep", "entry": r"# type:? *ignore(?!\[|\w)", **PYTHON},
    "text-unicode-replacement-char": {"language": "pygrep", "entry": "\N{REPLACEMENT CHARACTER}", **TEXT},
    "ruff-check": {"entry": "ruff check --force-exclude", "types_or": ["python", "pyi", "jupyter"]},
    "ruff-format": {"entry": "ruff format --force-exclude", "types_or": ["python", "pyi", "jupyter"]},
    "mypy": {"types_or": ["python", "pyi"], "require_serial": True},
    "codespell": TEXT,
    "nbstripout": {"types": ["jupyter"]},
    "validate-pyproject": {"files": r"^pyproject\.toml$"},
    "check-dependabot": {"entry": f"{SCHEMA}dependabot", "files": r"^\.github/dependabot\.ya?ml$"},
    "check-github-workflows": {"entry": f"{SCHEMA}github-workflows", "files": r"^\.github/workflows/", **YAML},
    "check-readthedocs": {"entry": f"{SCHEMA}readthedocs", "files": r"^\.readthedocs\.ya?ml$"},
    "zizmor": {"files": r"^\.github/", "require_serial": True, **YAML},
    "sp-repo-review": {"entry": "repo-review . --show=err", "pass_filenames": False},
}


def make_local(repository: dict[str, Any]) -> dict[str, Any]:
    """Return the hooks of one repository as local ones, which install its package in the same release."""
    name = repository["repo"].rpartition("/")[2]
    package = f"{PACKAGES.get(name, name)}=={repository['rev'].removeprefix('v')}"
    hooks = []
    for chosen in repository["hooks"]:
        hook = {"name": chosen["id"], "entry": chosen["id"], "language": "python", **HOOKS[chosen["id"]], **chosen}
        if hook["language"] == "python":
            hook["additional_dependencies"] = [package, *chosen.get("additional_dependencies", ())]
        hooks.append(hook)
    return {"repo": "local", "hooks": hooks}


def main(target: Path) -> None:
    """Write the configuration with local hooks."""
    content = yaml.safe_load(CONFIGURATION.read_text(encoding="utf-8"))
    content["repos"] = [make_local(repository) for repository in content["repos"]]
    target.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
