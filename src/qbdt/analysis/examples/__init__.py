"""Analysis files that come with qbdt: in goes a name, out comes the text of a YAML file."""

from importlib.resources import files

__all__ = ["example_names", "example_text"]


def example_names() -> tuple[str, ...]:
    """Names of the analysis files, without their ending."""
    found = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))


def example_text(name: str) -> str:
    """Text of one analysis file.

    Examples
    --------
    >>> example_text("synthetic").splitlines()[2]
    "name: INFERNO's synthetic problem"
    """
    return files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
