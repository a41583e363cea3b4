"""Random changes of bytes, of text and of plain data: what a damaged, careless or hostile file looks like."""

import copy
import random
from typing import Any

VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1e308,
    10**400,
    2**70,
    -0.0,
    float("nan"),
    float("-inf"),
    5e-324,
    "",
    "x",
    "\ud800",
    "../x",
    "a b",
    "*",
    "§" * 300,
    [],
    {},
    [None],
    {"a": 1},
]
"""Values that stand where others are expected."""

WORDS = [
    "1e999",
    "9" * 400,
    "[0]",
    "[1000000]",
    "((",
    "**",
    " and ",
    "not ",
    "jet_pt",
    "nan",
    "&a",
    "*a",
    "<<: ",
    "\0",
    "§",
]
"""Pieces of text that parsers have stumbled over."""


def change_plain(content: Any, rng: random.Random) -> Any:
    """Return plain data with one entry replaced, removed, or copied to another place."""
    changed = copy.deepcopy(content)
    places = list(_places(changed))
    holder, key = rng.choice(places)
    match rng.randrange(3):
        case 0:
            holder[key] = rng.choice(VALUES)
        case 1 if isinstance(holder, dict):
            del holder[key]
        case _:
            other, place = rng.choice(places)
            holder[key] = copy.deepcopy(other[place])
    return changed


def change_bytes(content: bytes, rng: random.Random) -> bytes:
    """Flip bits, cut the end off, or repeat a piece."""
    changed = bytearray(content or b"\0")
    match rng.randrange(4):
        case 0:
            return bytes(changed[: rng.randrange(len(changed))])
        case 1:
            begin = rng.randrange(len(changed))
            return bytes(changed[:begin] + changed[begin : begin + 64] + changed[begin:])
        case _:
            for _ in range(rng.choice((1, 1, 8))):
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def change_text(text: str, rng: random.Random) -> str:
    """Put a piece of text somewhere, or drop or repeat a line."""
    lines = text.split("\n")
    place = rng.randrange(len(lines))
    match rng.randrange(3):
        case 0:
            lines.insert(place, rng.choice(lines))
        case 1 if len(lines) > 1:
            del lines[place]
        case _:
            column = rng.randrange(len(lines[place]) + 1)
            lines[place] = lines[place][:column] + rng.choice(WORDS) + lines[place][column:]
    return "\n".join(lines)


def _places(content: Any) -> Any:
    entries = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in entries:
        yield content, key
        yield from _places(value)
