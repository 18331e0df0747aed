"""What the patterns of a vector mean (docs/vectors.md): an answer is held to them field by field.

Values are built-in ones: numbers, texts, lists or tuples, mappings.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from kvspec.errors import BadInput

from .model import Bounds, Check, Number, Predicate


class Differs(Exception):
    """An answer is not what it may be."""

    def __init__(self, clause: str, observed: object, allowed: object) -> None:
        super().__init__(clause)
        self.clause, self.observed, self.allowed = clause, observed, allowed


class Parts(Exception):
    """An answer is allowed, and is not the one with which the case goes on."""


@dataclass(slots=True)
class Bound:
    """What the names of a case stand for, in a pool of `num_blocks`, and the books shown last."""

    num_blocks: int
    blocks: dict[str, int] = dataclasses.field(default_factory=dict)
    digests: dict[tuple[int, str], str] = dataclasses.field(default_factory=dict)
    shown: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    field: str = ""
    """The field that is looked at."""

    def block(self, name: str) -> int:
        """The block of a name. Raises `BadInput` for one that stands for nothing."""
        if name not in self.blocks:
            raise BadInput(f"the name {name} stands for no block here")
        return self.blocks[name]

    def value(self, pattern: Any) -> Any:
        """A pattern without predicates, its names replaced."""
        if isinstance(pattern, str):
            return self.block(pattern)
        if isinstance(pattern, tuple):
            return tuple(map(self.value, pattern))
        return pattern

    def in_words(self, pattern: Any) -> Any:
        """A pattern as it is shown to a person: predicates as objects, names with their blocks."""
        if isinstance(pattern, str):
            return f"{pattern}={self.blocks[pattern]}" if pattern in self.blocks else pattern
        if isinstance(pattern, tuple):
            return [self.in_words(item) for item in pattern]
        if isinstance(pattern, Predicate):
            name, content = content_of(pattern)
            return {name: self.in_words(content)}
        if isinstance(pattern, Bounds | Number):
            given = {n: getattr(pattern, n) for n in ("least", "most")}
            return {n: self.in_words(v) for n, v in given.items() if v is not UNSET}
        return pattern


def content_of(predicate: Predicate) -> tuple[str, Any]:
    """The one field of a predicate. Raises `BadInput` unless there is exactly one."""
    given = [(n, v) for n in PREDICATES if (v := getattr(predicate, n)) is not UNSET]
    if len(given) != 1:
        names = " and ".join(name for name, _ in given) or "none"
        raise BadInput(f"a predicate has exactly one of {', '.join(PREDICATES)}; got {names}")
    return given[0]


def hold(check: Check, answer: Mapping[str, Any], bound: Bound) -> None:
    """Hold one field of an answer to what it may be. Raises `Differs`, `Parts`."""
    seen = answer.get(check.field)
    if seen is None:
        raise BadInput(f"there is no field {check.field} in such an answer")
    bound.field = check.field
    try:
        if check.of is not UNSET:
            seen = seen.get(bound.block(check.of), () if check.field == "keys" else 0)
        _match(check.is_, seen, bound)
    except _No as no:
        raise Differs(no.clause or check.clause, seen, bound.in_words(check.is_)) from None
    except (AttributeError, LookupError, TypeError, ValueError):
        raise BadInput(f"what is said of the field {check.field} cannot be said of it") from None


class _No(Exception):
    """A value does not match; `clause` is that of the innermost predicate that has one."""

    def __init__(self, clause: str = "") -> None:
        super().__init__(clause)
        self.clause = clause


def _match(pattern: Any, seen: Any, bound: Bound) -> None:
    if isinstance(pattern, Predicate):
        name, content = content_of(pattern)
        try:
            PREDICATES[name](content, seen, bound)
        except _No as no:
            clause = pattern.clause if pattern.clause is not UNSET else ""
            raise _No(no.clause or clause) from None
    elif isinstance(pattern, tuple):
        _require(isinstance(seen, list | tuple) and len(seen) == len(pattern))
        for one, value in zip(pattern, seen, strict=True):
            _match(one, value, bound)
    else:
        _require(_same(bound.value(pattern), seen))


def _require(holds: bool) -> None:
    if not holds:
        raise _No


def _same(one: Any, other: Any) -> bool:
    """Equal, lists being as good as tuples, and a truth value no number."""
    if isinstance(one, list | tuple):
        alike = isinstance(other, list | tuple) and len(one) == len(other)
        return alike and all(map(_same, one, other))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _bag(values: Any) -> Counter[Any]:
    return Counter(tuple(v) if isinstance(v, list | tuple) else v for v in values)


# --- the predicates -------------------------------------------------------------------------------


def _one_of(patterns: Any, seen: Any, bound: Bound) -> None:
    for number, pattern in enumerate(patterns):
        try:
            _match(pattern, seen, bound)
        except _No:
            continue
        if number:
            raise Parts
        return
    raise _No


def _fresh(name: str, seen: Any, bound: Bound) -> None:
    _require(type(seen) is int and 0 < seen < bound.num_blocks)
    _require(seen not in bound.blocks.values())
    bound.blocks[name] = seen


def _bags(bags: Any, seen: Any, bound: Bound) -> None:
    _require(len(seen) == sum(map(len, bags)))
    start = 0
    for bag in bags:
        end = start + len(bag)
        _require(_bag(bound.value(bag)) == _bag(seen[start:end]))
        start = end


def _blocks(names: Any, seen: Any, bound: Bound) -> None:
    _require(_bag(bound.value(names)) == _bag(block for block in seen if block != 0))


def _places(places: Any, seen: Any, bound: Bound) -> None:
    for index, name in places:
        _require(index < len(seen) and seen[index] == bound.block(name))


def _copies(copies: Any, seen: Any, bound: Bound) -> None:
    found = dict(seen)
    _require(len(seen) == len(found) == len(copies))
    for name, pattern in copies:
        source = bound.block(name)
        _require(source in found)
        _match(pattern, found[source], bound)


def _bounds(bounds: Bounds, seen: Any, bound: Bound) -> None:
    _require(set(bound.value(bounds.least)) <= set(seen))
    _require(bounds.most is UNSET or set(seen) <= set(bound.value(bounds.most)))


def _number(number: Number, seen: Any, _: Bound) -> None:
    _require(number.least <= seen and (number.most is UNSET or seen <= number.most))


def _shape(shape: Any, seen: Any, _: Bound) -> None:
    _require(_same(shape, tuple(tuple(block != 0 for block in table) for table in seen)))


def _map(entries: Any, seen: Any, bound: Bound) -> None:
    expected = {bound.block(k) if k.startswith("$") else k: pattern for k, pattern in entries}
    left = {key: value for key, value in seen.items() if not _is_empty(value)}
    _require(left.keys() == expected.keys())
    for key, pattern in expected.items():
        _match(pattern, left[key], bound)


def _is_empty(value: Any) -> bool:
    """0, or a list in which there is nothing but empty lists."""
    return all(map(_is_list_of_none, value)) if isinstance(value, list | tuple) else value == 0


def _is_list_of_none(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_list_of_none, value))


def _key(key: Any, seen: Any, bound: Bound) -> None:
    group, name = key
    _require(len(seen) == 2 and seen[0] == group)
    known = bound.digests.get((group, name))
    if known is None:
        _require(all(text != seen[1] for (g, _), text in bound.digests.items() if g == group))
        bound.digests[group, name] = seen[1]
    else:
        _require(known == seen[1])


def _pool_without(held: Any, seen: Any, bound: Bound) -> None:
    _require(set(seen) == set(range(1, bound.num_blocks)) - set(bound.value(held)))


def _order(names: Any, seen: Any, bound: Bound) -> None:
    wanted = bound.value(names)
    _require(tuple(block for block in seen if block in wanted) == wanted)


def _distinct(_: Any, seen: Any, __: Bound) -> None:
    _require(len(set(seen)) == len(seen))


def _unchanged(_: Any, seen: Any, bound: Bound) -> None:
    _require(_same(seen, bound.shown.get(bound.field)))


PREDICATES: dict[str, Callable[[Any, Any, Bound], None]] = {
    "one_of": _one_of,
    "fresh": _fresh,
    "bags": _bags,
    "blocks": _blocks,
    "places": _places,
    "copies": _copies,
    "bounds": _bounds,
    "number": _number,
    "shape": _shape,
    "map": _map,
    "key": _key,
    "pool_without": _pool_without,
    "order": _order,
    "distinct": _distinct,
    "unchanged": _unchanged,
}
"""By name, what holds a value to the content of each predicate."""
