"""The judge does not choose: targets with other policies conform where the rules leave it open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvspec.errors import ClauseBroken
from kvspec.machine import run_machine
from kvspec.reference.lookup import Finder, Result
from kvspec.reference.manager import Manager
from kvspec.reference.pool import Key, Pool
from kvspec.spec import events as ev
from kvspec.spec.clauses import Profile
from kvspec.spec.types import NULL_BLOCK, BlockId, Config, RequestId


class OtherPool(Pool):
    """Hands out the newest of several copies, and prefers unkeyed blocks by their number."""

    def take(self) -> BlockId:
        unkeyed = sorted(block for block in self.free_list if block not in self.keys)
        keyed = [block for block in self.free_list if block in self.keys]
        self.free_list = [*reversed(unkeyed), *keyed]
        return super().take()

    def find(self, key: Key) -> BlockId | None:
        return self.index[key][-1] if key in self.index else None


class OtherChoices(Manager):
    """The reference with `OtherPool`."""

    def configure(self, config: Config) -> ev.Capabilities:
        super().configure(config)
        self.pool = OtherPool(config.num_blocks)
        return ev.Capabilities("other choices", shows=ev.SHOWABLE)


class Modest(Manager):
    """Shows nothing, and finds less than it could: only hits of whole scheduler blocks."""

    def configure(self, config: Config) -> ev.Capabilities:
        super().configure(config)
        return ev.Capabilities("modest")

    def lookup(self, request: RequestId) -> ev.Hit:
        finder = Finder(self.config, self.pool, self.requests[request].prefix)
        length = finder.joint().num_tokens // self.config.scheduler_block
        finder.limit = length * self.config.scheduler_block
        finder.own = [finder.find(g, finder.limit) for g in self.config.ids()]
        result = finder.joint()
        if result.num_tokens % self.config.scheduler_block:
            result.blocks, result.num_tokens = [[] for _ in self.config.groups], 0
        result.states = [result.num_tokens] * len(self.config.groups)
        self.last_lookup = request, result
        return ev.Hit(tuple(tuple(table) for table in result.blocks), result.num_tokens)


def test_other_choices_conform_to_accounting_but_not_exactly() -> None:
    run = run_machine("other", OtherChoices, profile=Profile.ACCOUNTING, examples=150)
    assert run.events > 5000
    with pytest.raises(ClauseBroken) as broken:
        run_machine("other", OtherChoices, profile=Profile.EXACT, examples=150)
    assert broken.value.violation.clause.id == "LIVE.EXACT"


def test_a_modest_target_is_sound() -> None:
    run = run_machine("modest", Modest, examples=150)
    assert run.events > 5000


class LetsGo(Manager):
    """Gives the local state up when external tokens take its place, and counts without it."""

    def configure(self, config: Config) -> ev.Capabilities:
        super().configure(config)
        return ev.Capabilities("lets go", shows=ev.SHOWABLE)

    def _last_hit(self, request: RequestId) -> Result:
        hit = super()._last_hit(request)
        if not self.external:
            return hit
        blocks = [
            [NULL_BLOCK] * len(table) if group.recurrent else table
            for group, table in zip(self.config.groups, hit.blocks, strict=True)
        ]
        return replace(hit, blocks=blocks)

    def allocate(
        self,
        request: RequestId,
        num_new_tokens: int,
        num_external_tokens: int = 0,
        num_lookahead_tokens: int = 0,
        delay_caching: bool = False,
    ) -> ev.Grant:
        self.external = num_external_tokens > 0
        tokens = num_new_tokens, num_external_tokens, num_lookahead_tokens
        return super().allocate(request, *tokens, delay_caching)


def test_a_local_state_may_be_let_go_when_a_load_replaces_it() -> None:
    run = run_machine("lets go", LetsGo, profile=Profile.ACCOUNTING, examples=150)
    assert run.events > 5000


class ServesOld(Modest):
    """Modest, and a reset forgets no key."""

    def reset(self) -> ev.ResetDone:
        return ev.ResetDone(not any(self.pool.refs))


def test_without_books_what_outlives_a_reset_is_found_by_its_content() -> None:
    with pytest.raises(ClauseBroken) as broken:
        run_machine("serves old", ServesOld, examples=2000)
    assert broken.value.violation.clause.family == "DATA"


class Stale(Modest):
    """Modest, and hands out blocks that are still found under their old keys."""

    def _take(self, g: int, external: bool, copied: bool) -> BlockId:
        stale = self.pool.keys.get(self.pool.free_list[0])
        block = super()._take(g, external, copied)
        if stale is not None:
            self.pool.publish(block, *stale)
        return block


def test_without_books_wrong_data_is_what_shows() -> None:
    """Nothing is shown but hits and tables: the stale block is found by what is read from it."""
    with pytest.raises(ClauseBroken) as broken:
        run_machine("stale", Stale, examples=2000)
    assert broken.value.violation.clause.family in {"DATA", "COW", "ALLOC"}
