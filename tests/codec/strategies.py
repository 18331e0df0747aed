"""Any event and any observation, whether or not it makes sense to send it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from kvspec import generators
from kvspec.spec import events as ev
from kvspec.spec.types import MAX_TOKEN, Config

PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(0, MAX_TOKEN),
    str: st.text(st.characters(codec="utf-8"), max_size=256),
    bool: st.booleans(),
    type(None): st.none(),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type of the event language."""
    hint = getattr(hint, "__supertype__", hint)
    hint = getattr(hint, "__supertype__", hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return PLAIN[hint]
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return st.builds(hint, **{f.name: values(hints[f.name]) for f in fields(hint)})  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    if origin in (Union, UnionType):
        return st.one_of([values(argument) for argument in arguments])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=3)
    if arguments[-1] is ...:
        return st.lists(values(arguments[0]), max_size=4).map(tuple)
    return st.tuples(*(values(argument) for argument in arguments))


EVENTS: st.SearchStrategy[ev.Event] = st.one_of(
    generators.configs(), *(values(kind) for kind in ev.ANSWERS if kind is not Config)
)
ANSWERED = st.sampled_from(list(ev.ANSWERS.items())).flatmap(
    lambda pair: st.tuples(
        values(pair[0]) if pair[0] is not Config else generators.configs(),
        st.one_of(values(pair[1]), values(ev.Rejection)),
    )
)
"""An event with what a target could answer."""
