"""Keeping a state and its managers as bytes, and making them again.

`pickle` does it, told how to write the vocabulary's frozen dataclasses in few bytes: as a call of
the class. What all states of a world share (its configuration, prefixes) is shared again.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any

from kvspec.optimized.layout import Layout
from kvspec.reference import lookup, plan
from kvspec.spec import content, state
from kvspec.spec.digests import Prefix, make_prefix
from kvspec.spec.types import Config, Identity, Token

_shared_config: list[Config] = []


def share(config: Config) -> None:
    """All that is thawed in this process from now on is of this configuration."""
    _shared_config[:] = [config]
    _layout.cache_clear()


def _config() -> Config:
    return _shared_config[0]


@cache
def _layout() -> Layout:
    """The optimized manager's view of the configuration, which never changes."""
    return Layout(_config())


@cache
def _prefix(tokens: tuple[Token, ...], prompt: int) -> Prefix:
    """A prefix of a world: plain, and equal prefixes are one object."""
    made = make_prefix(Identity(), tokens[:prompt], _config().hash_unit)
    return made.extended(tokens[prompt:]) if len(tokens) > prompt else made


def _reduce_prefix(prefix: Prefix) -> Any:
    assert prefix.identity == Identity()
    return _prefix, (prefix.tokens, len(prefix.prompt))


def _by_call(kind: type) -> Callable[[Any], Any]:
    """Written as a call of the class with its fields."""
    names = [field.name for field in fields(kind)]
    get = attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
    return lambda value: (kind, get(value))


_TABLE: dict[type, Callable[[Any], Any]] = {
    **copyreg.dispatch_table,
    Config: lambda _: (_config, ()),
    Layout: lambda _: (_layout, ()),
    Prefix: _reduce_prefix,
    **{
        kind: _by_call(kind)
        for kind in (
            state.DetachedList,
            state.Entry,
            state.Forward,
            state.HandOff,
            state.LastLookup,
            state.Pass,
            state.Request,
            state.State,
            state.Work,
            content.Rows,
            content.Run,
            content.RecurrentState,
            lookup.Result,
            plan.Request,
        )
    },
}


def freeze(value: Any) -> bytes:
    """A value as bytes."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, 5)
    pickler.dispatch_table = _TABLE
    pickler.dump(value)
    return buffer.getvalue()


def thaw(data: bytes) -> Any:
    """The value again, all its own but for what the world shares."""
    return pickle.loads(data)
