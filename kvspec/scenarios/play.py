"""What scenarios are written with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvspec.driver import PLAIN, Driver
from kvspec.errors import ConfigDeclined, EventUnsupported, ScenarioFailed
from kvspec.memory import StoreKind
from kvspec.session import Session
from kvspec.spec import events as ev
from kvspec.spec.case import Ledger
from kvspec.spec.clauses import Profile
from kvspec.spec.types import BlockId, Config, Group, GroupKind, Identity, RequestId, Tables
from kvspec.targets import Factory

P6 = (0, 0, 1, 1, 2, 2)
"""The prompt that most scenarios share."""


class Unsupported(Exception):
    """The target lacks an event that the scenario needs."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A worked example; `id` is its row in the table or the atlas."""

    id: str
    title: str
    run: Callable[[Play], None]


def full(block_size: int, eagle: bool = False, zeroed: bool = False) -> Group:
    """A full-attention group."""
    return Group(GroupKind.FULL, block_size, eagle, zeroed)


def mamba(block_size: int, zeroed: bool = False) -> Group:
    """A recurrent group."""
    return Group(GroupKind.MAMBA_ALIGN, block_size, False, zeroed)


def cache(*groups: Group, hash_unit: int = 2, num_blocks: int = 20, **more: Any) -> Config:
    """A small cache."""
    return Config(num_blocks, hash_unit, groups, more.pop("max_model_len", 64), **more)


class Play(Driver):
    """A driver that starts caches and compares what it sees with what must be shown."""

    def __init__(
        self,
        name: str,
        factory: Factory,
        profile: Profile | None,
        ledger: Ledger,
        store: StoreKind = StoreKind.AUTO,
    ) -> None:
        self.target, self._factory, self._store = name, factory, store
        self._profile, self._ledger = profile, ledger

    def start(self, config: Config) -> None:
        """Begin with an empty cache."""
        name, factory = self.target, self._factory
        try:
            self.session = Session(
                name,
                factory,
                config,
                profile=self._profile,
                ledger=self._ledger,
                store=self._store,
            )
        except ConfigDeclined as declined:
            raise Unsupported(str(declined)) from declined

    def send(self, event: ev.Event) -> Any:
        """Send an event; a scenario cannot do without it."""
        if self.session.lacks(event):
            raise Unsupported(f"the target does not take {self.session.target.lacks(event)}")
        try:
            return self.session.send(event)
        except EventUnsupported as unsupported:
            raise Unsupported(str(unsupported)) from unsupported

    def expect(self, what: str, observed: object, allowed: object) -> None:
        """Compare one value."""
        if observed != allowed:
            events = (self.session.config, *self.session.events)
            raise ScenarioFailed(f"{what}: observed {observed!r}, must be {allowed!r}", events)

    @property
    def accounting(self) -> bool:
        """Whether the target shows its books, so that keys and counts are known."""
        return self.session.profile.covers(Profile.ACCOUNTING)

    def expect_key(self, block: BlockId, length: int | None) -> None:
        """The block is keyed at this length, or not at all."""
        if self.accounting:
            entry = self.state.keys.get(block)
            self.expect(f"key of block {block}", entry and entry.length, length)

    def expect_count(self, block: BlockId, count: int) -> None:
        """The block has this many holders."""
        if self.accounting:
            self.expect(f"holders of block {block}", self.state.refs.get(block, 0), count)

    def sizes(self, blocks: Tables) -> tuple[int, ...]:
        """How many slots each group has."""
        return tuple(len(table) for table in blocks)

    def prefill(
        self, name: str, tokens: tuple[int, ...], *chunks: int, identity: Identity = PLAIN
    ) -> None:
        """Submit a request and compute it in chunks of these sizes; one, where none are given."""
        request = self.submit(name, tokens, identity)
        for size in chunks or (len(tokens),):
            self.begin()
            if not self.state.requests[request].tables:
                hit = self.lookup(name)
                size = size if chunks else len(tokens) - hit.num_tokens
            self.expect("prefill granted", self.allocate(name, size).granted, True)
            self.step()

    def table(self, name: str) -> Tables:
        """A request's block tables."""
        return self.state.requests[RequestId(name)].tables

    def take_all_free(self, name: str) -> tuple[BlockId, ...]:
        """A request of its own takes every free block of a cache with one full group first."""
        groups, free = self.state.config.groups, self.state.num_free
        size = groups[0].block_size
        slots = free - sum(group.recurrent for group in groups)
        self.submit(name, tuple(range(100, 100 + slots * size)))
        self.begin()
        grant = self.allocate(name, slots * size)
        self.expect("every free block granted", grant.granted, True)
        self.step()
        return tuple(b for table in grant.table for b in table if b)
