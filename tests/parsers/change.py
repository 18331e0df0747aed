"""One input from another: a change of bytes, of lines, or of a value inside the JSON of a line."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

ODD: tuple[Any, ...] = (
    *(0, -1, 1, 2, 3, 7, 2**31, 2**32 + 1, 2**63, -(2**63) - 1, 2**64, 10**400),
    *(0.0, 0.5, 1e308, True, False, None),
    *("", "a", "b", "\x00", "\n", "\ud800", "é" * 300, "0", "-1"),
    *([], [[]], [0], [None], {}, {"": 0}, {"0": {}}, {"a": []}),
)
"""What no reader may trip over, wherever it stands."""

BYTES = (
    b"\x00",
    b"\n",
    b"\xff",
    b"\xed\xa0\x80",
    b'"',
    b"{",
    b"}",
    b"[" * 2000,
    b",",
    b"\\u",
    b" ",
)


def changed(data: bytes, rng: Random) -> bytes:
    """The input with one to three changes."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = rng.choice(_CHANGES)(data, rng)
    return data


def _of_bytes(data: bytes, rng: Random) -> bytes:
    """Cut something out, and put something in."""
    at = rng.randrange(len(data) + 1)
    gone = rng.choice((0, 0, 1, 1, 2, 8, len(data)))
    return data[:at] + rng.choice((b"", *BYTES)) + data[at + gone :]


def _of_lines(data: bytes, rng: Random) -> bytes:
    """Leave a line out, say one twice, or exchange two."""
    lines = data.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[a]
        case 1:
            lines.insert(b, lines[a])
        case 2:
            lines[a], lines[b] = lines[b], lines[a]
        case _:
            del lines[a:]
    return b"\n".join(lines)


def _of_values(data: bytes, rng: Random) -> bytes:
    """Change a value in one line, or in all of the input where its lines are no JSON."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    for text in (lines[at], data):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        made = _encoded(_with_change(value, rng))
        if text is data:
            return made
        lines[at] = made
        return b"\n".join(lines)
    return _of_lines(data, rng)


def _encoded(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return b"0"


def _with_change(value: Any, rng: Random) -> Any:
    """The value with one place in it changed; deeper places are as likely as shallow ones."""
    places: list[tuple[Any, Any]] = []
    _collect(value, places)
    if not places or rng.randrange(20) == 0:
        return rng.choice(ODD)
    holder, key = rng.choice(places)
    match rng.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[rng.choice(("", "event", "observed", "x", f"{key} "))] = holder[key]
        case 1:
            holder.insert(key, holder[rng.randrange(len(holder))])
        case 2:
            other, at = rng.choice(places)
            holder[key] = other[at]
        case 3 if isinstance(holder[key], int):
            holder[key] += rng.choice((-1, 1))
        case _:
            holder[key] = rng.choice(ODD)
    return value


def _collect(value: Any, places: list[tuple[Any, Any]]) -> None:
    keys: Any = ()
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = range(len(value))
    for key in keys:
        places.append((value, key))
        _collect(value[key], places)


_CHANGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    _of_bytes,
    _of_lines,
    _of_values,
    _of_values,
    _of_values,
)
