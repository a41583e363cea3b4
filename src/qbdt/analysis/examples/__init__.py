"""Analysis files that come with qbdt, as text."""

from importlib.resources import files

__all__ = ["names", "text"]


def names() -> tuple[str, ...]:
    """Names of the analysis files, without their ending."""
    return tuple(
        sorted(entry.name.removesuffix(".yaml") for entry in files(__name__).iterdir() if entry.name.endswith(".yaml"))
    )


def text(name: str) -> str:
    """Text of one analysis file.

    Examples
    --------
    >>> text("synthetic").splitlines()[2]
    "name: INFERNO's synthetic problem"
    """
    return files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
