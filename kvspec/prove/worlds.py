"""Tiny caches whose whole state space can be walked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from kvspec.errors import BadInput
from kvspec.spec.types import Config, Connector, Group, GroupKind, Token

ALPHABET = (Token(0), Token(1))
"""Two tokens: enough for prompts that part at any position."""


@dataclass(frozen=True, slots=True)
class World:
    """A cache and what may be asked of it.

    At most `requests` are live at a time, with prompts of 1 to `longest` tokens over a two-token
    alphabet, and every request may grow to the model's length. With `delays` each grant is also
    asked for with delayed caching, with `detaches` blocks may also be detached from a request.

    A `prompt` world has a driver that, once it drains the step's lists, drains them all, dispatches
    the step, executes and processes it and releases the endpoints of its copies at once; unless it
    `holds_on` to them as long as it likes. In the others anything may come between.
    """

    id: str
    title: str
    config: Config
    requests: int
    longest: int
    delays: bool = False
    detaches: bool = False
    prompt: bool = False
    evicts: bool = True
    holds_on: bool = False

    @property
    def prompts(self) -> tuple[tuple[Token, ...], ...]:
        """All prompts, shorter ones first."""
        lengths = range(1, self.longest + 1)
        return tuple(p for length in lengths for p in product(ALPHABET, repeat=length))


def hybrid(num_blocks: int, full: int, mamba: int, length: int, eagle: bool = False) -> Config:
    """One full and one mamba_align group over a hash unit of one token; sizes in tokens."""
    groups = Group(GroupKind.FULL, full, eagle), Group(GroupKind.MAMBA_ALIGN, mamba)
    return Config(num_blocks, hash_unit=1, groups=groups, max_model_len=length)


def _world(
    id: str, title: str, config: Config, requests: int = 1, longest: int = 0, **more: bool
) -> World:
    return World(id, title, config, requests, longest or config.max_model_len, **more)


_CONNECTED = replace(hybrid(3, 2, 2, 2), connector=Connector.DIVERGING)
_IN_FLIGHT = replace(hybrid(3, 1, 1, 2), deferral=True, max_in_flight=2)

SMALL = (
    _world("alone", "one request, room for both kinds of copy", hybrid(5, 2, 2, 2),
           prompt=True, evicts=False),
    _world("eagle", "one request, an eagle group", hybrid(4, 2, 2, 2, eagle=True),
           prompt=True, evicts=False),
    _world("loose", "one request, anything between any two events", hybrid(3, 2, 2, 2),
           evicts=False),
    _world("pair", "two requests, a pool that is always short", hybrid(3, 1, 1, 2), 2,
           prompt=True, evicts=False),
    _world("connector", "one request, a diverging connector", _CONNECTED, prompt=True),
    _world("in-flight", "one request, two steps in flight behind fences", _IN_FLIGHT,
           evicts=False),
)  # fmt: skip
"""What CI walks: a minute's work for one core."""

DEEP = (
    _world("holding-on", "one request, endpoints of copies released at any time",
           hybrid(5, 2, 2, 2), prompt=True, evicts=False, holds_on=True),
    _world("loose-evicted", "loose, and keys dropped at any time", hybrid(3, 2, 2, 2)),
    _world("pair-partial", "two requests, partial entries, keys dropped at any time",
           hybrid(3, 1, 2, 2), 2, prompt=True),
    _world("pair-of-states", "two requests that meet in one step", hybrid(4, 1, 1, 2), 2,
           prompt=True, evicts=False),
    _world("trio", "three requests, prompts of one token", hybrid(3, 1, 1, 2), 3, 1,
           prompt=True, evicts=False),
    _world("connector-detached", "a diverging connector, blocks detached and handed off",
           replace(_CONNECTED, num_blocks=4), prompt=True, evicts=False, detaches=True),
    _world("in-flight-partial", "two steps in flight, partial entries",
           replace(hybrid(3, 2, 2, 2), deferral=True, max_in_flight=2), evicts=False),
)  # fmt: skip
"""What `make deep` walks besides."""

WORLDS = {world.id: world for world in (*SMALL, *DEEP)}
"""All worlds by id."""


def choose(names: Sequence[str], deep: bool) -> tuple[World, ...]:
    """The worlds of these names; without any, the small ones, and the deep ones where asked."""
    for name in names:
        if name not in WORLDS:
            raise BadInput(f"--world {name}: there is no such world; use {', '.join(WORLDS)}")
    if names:
        return tuple(WORLDS[name] for name in dict.fromkeys(names))
    return (*SMALL, *DEEP) if deep else SMALL
