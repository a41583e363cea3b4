"""Names that people give to things, as other programs take them: names of files, words of fit programs.

Both mappings are one-to-one whatever the names are: different things keep different names.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable

LONGEST = 150
"""Bytes of a name that stay: with its ending and a scratch name around it, every file system takes it (255)."""

HARMFUL = frozenset("/\\%~*?[]{}:;|<>\"'`$&!#=")
"""Characters with a meaning for a file system, a shell, a wildcard or this module."""


def choose_file_names(names: Iterable[str]) -> list[str]:
    """Names of files, without ending, for things that are called anything: different for each entry.

    Letters, digits and most signs stay; what means something to a file system, a shell or a wildcard is written as %
    and its code. Names that some disks take for the same one, or that are the same, get ~2, ~3, … at their end.

    Examples
    --------
    >>> choose_file_names(["ttbar", "../ttbar", "TTbar"])
    ['ttbar', '%2E.%2Fttbar', 'TTbar~2']
    """
    given = list(names)
    return _number_repeated(given, [_quote(name) for name in given], (), "~", _fold)


def choose_words(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Words of letters, digits and underscores that stand for names: different for each entry, and none that is taken.

    Examples
    --------
    >>> choose_words(["ttbar", "tt bar", "tt/bar", "lumi"], taken=["lumi"])
    ['ttbar', 'tt_bar', 'tt_bar_2', 'lumi_2']
    """
    given = list(names)
    return _number_repeated(given, [_spell(name) for name in given], taken, "_", str)


def _number_repeated(
    given: list[str], wanted: list[str], taken: Iterable[str], mark: str, fold: Callable[[str], str]
) -> list[str]:
    """Wanted names, with numbers where they are taken already; those that are as they were given choose first."""
    used = {fold(name) for name in taken}
    chosen = dict.fromkeys(range(len(wanted)), "")
    for place in sorted(chosen, key=lambda place: given[place] != wanted[place]):
        found, number = wanted[place], 1
        while fold(found) in used:
            number += 1
            found = f"{wanted[place]}{mark}{number}"
        used.add(fold(found))
        chosen[place] = found
    return list(chosen.values())


def _quote(name: str) -> str:
    shown = "".join(c if _is_harmless(c) else _code(c) for c in name) or "%"
    if shown[0] in ".- ":
        shown = _code(shown[0]) + shown[1:]
    if shown[-1] in ". ":
        shown = shown[:-1] + _code(shown[-1])
    return _cut(shown, "~", name)


def _spell(name: str) -> str:
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return _cut(word if word[:1].isalpha() or word[:1] == "_" else f"_{word}", "_", name)


def _cut(shown: str, mark: str, name: str) -> str:
    """Cut a name that is too long, and let the digest of all of it tell it from others."""
    if len(shown.encode()) <= LONGEST:
        return shown
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{shown.encode()[:LONGEST].decode(errors='ignore')}{mark}{digest[:16]}"


def _is_harmless(character: str) -> bool:
    if not character.isascii():
        return character.isalnum()
    return character.isprintable() and character not in HARMFUL


def _code(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def _fold(name: str) -> str:
    """Name as a disk sees it that knows neither case nor the two ways of writing an accent."""
    return unicodedata.normalize("NFKD", name.casefold())
