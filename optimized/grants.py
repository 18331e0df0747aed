"""Granting blocks (design 4.3, 4.4, 4.5): what is needed is counted before anything is taken."""

from __future__ import annotations

from typing import cast

from kvspec.spec.events import CopyPair, Grant
from kvspec.spec.types import BlockId, Tables

from .fences import Fences
from .layout import Layout
from .lookup import Found
from .offers import Offers
from .pool import Pool
from .requests import Request
from .step_lists import StepLists


class FirstPlan:
    """A first grant before it is given: the hit's part of each table, and what it lacks.

    By group: `tables` have null where a block has to be taken, `fresh` lists those slots in order,
    `sources` is the shared block that is copied into the first of them (0: none), and the first
    `unzeroed` of them are written by a copy or a connector. `low`: see `Request`.
    """

    __slots__ = ("end", "external", "fresh", "hit", "low", "reserve", "sources", "start", "tables",
                 "unzeroed")  # fmt: skip

    def __init__(self, hit: Found, new: int, external: int, reserve: int) -> None:
        self.hit = hit
        self.external: int = external
        self.start: int = hit.num_tokens + external
        self.end: int = self.start + new
        self.reserve: int = reserve
        self.tables: list[list[int]] = []
        self.fresh: list[list[int]] = []
        self.sources: list[int] = []
        self.unzeroed: list[int] = []
        self.low: list[int] = []

    def add_full(self, size: int, hit: tuple[int, ...]) -> None:
        """The hit, a private copy of its last block when the hit ends inside, and all the rest."""
        table, source = list(hit), 0
        if self.hit.num_tokens % size:
            source = table.pop()
        kept, needed = len(table), -(-self.reserve // size)
        fresh = list(range(kept, needed))
        table.extend([0] * len(fresh))
        self._add(table, fresh, source, -(-self.start // size) - kept, 0)

    def add_recurrent(self, size: int, hit: tuple[int, ...], state: int) -> None:
        """Only the states that the chunk starts from and ends with have blocks."""
        local, table, source = self.hit.num_tokens, list(hit), 0
        fresh: list[int] = []
        if table and state != local:
            table[-1] = 0
        elif local % size:
            source, table[-1] = table[-1], 0
            fresh.append(len(table) - 1)
        table.extend([0] * (-(-self.end // size) - len(table)))
        if self.external:
            fresh.append((self.start - 1) // size)
        last = (self.end - 1) // size
        if last not in fresh:
            fresh.append(last)
        unzeroed = 1 if source or self.external else 0
        self._add(table, fresh, source, unzeroed, max(len(hit) - 1, 0))

    def _add(
        self, table: list[int], fresh: list[int], source: int, unzeroed: int, low: int
    ) -> None:
        assert not source or fresh
        self.tables.append(table)
        self.fresh.append(fresh)
        self.sources.append(source)
        self.unzeroed.append(unzeroed)
        self.low.append(low)


class Granter:
    """Decides on grants and carries them out, all of one or nothing.

    Grant:  `first`, `later`
    """

    __slots__ = ("fences", "layout", "lists", "offers", "pool")

    def __init__(
        self, layout: Layout, pool: Pool, lists: StepLists, fences: Fences, offers: Offers
    ) -> None:
        self.layout = layout
        self.pool = pool
        self.lists = lists
        self.fences = fences
        self.offers = offers

    def _refusal(self, r: Request) -> Grant:
        nothing = self.layout.nothing
        return Grant(False, nothing, r.table() if r.tables else nothing)

    def _take(self, g: int, count: int, unzeroed: int) -> list[int]:
        """Take blocks for a group; all but the first `unzeroed` are zeroed where it asks for it."""
        blocks = self.pool.take_many(count)
        self.offers.forget(blocks)
        if self.layout.zeroed[g]:
            for block in blocks[unzeroed:]:
                self.lists.zero(block)
        return blocks

    # --- a request's first grant ----------------------------------------------------------------

    def first(self, r: Request, hit: Found, new: int, external: int, lookahead: int) -> Grant:
        """Grant on a hit, or refuse and change nothing. O(table)."""
        assert not r.tables
        plan = self._plan(hit, new, external, lookahead)
        if not self._room(plan) or self._must_wait(plan):
            return self._refusal(r)
        for table in plan.tables:
            self.pool.hold_many(table)
        self.pool.hold_many(plan.sources)
        new_blocks: list[tuple[int, ...]] = []
        copies: list[CopyPair] = []
        for g in range(self.layout.num_groups):
            new_blocks.append(self._fill(plan, g, copies))
        r.start(plan.tables, plan.low)
        r.computed, r.local, r.registered = plan.start, hit.num_tokens, hit.num_tokens
        r.loading = external > 0
        return Grant(True, cast(Tables, tuple(new_blocks)), r.table(), tuple(copies))

    def _plan(self, hit: Found, new: int, external: int, lookahead: int) -> FirstPlan:
        layout = self.layout
        end = hit.num_tokens + external + new
        plan = FirstPlan(hit, new, external, min(end + lookahead, layout.max_model_len))
        for g in range(layout.num_groups):
            if layout.recurrent[g]:
                plan.add_recurrent(layout.sizes[g], hit.blocks[g], hit.states[g])
            else:
                plan.add_full(layout.sizes[g], hit.blocks[g])
        return plan

    def _room(self, plan: FirstPlan) -> bool:
        """Whether the pool has what is taken, and the hit's blocks that nobody holds."""
        need = len(self.pool.unheld(plan.sources))
        for table, fresh in zip(plan.tables, plan.fresh, strict=True):
            need += len(fresh) + len(self.pool.unheld(table))
        return need <= self.pool.free.count

    def _must_wait(self, plan: FirstPlan) -> bool:
        """Whether the hit needs a state, or a copy of positions, that this step still writes."""
        local, lists = plan.hit.num_tokens, self.lists
        for g, source in enumerate(plan.sources):
            if source and lists.lowest_write(source, local) < local:
                return True
            kept = len(plan.hit.blocks[g])
            if self.layout.recurrent[g] and kept:
                state = plan.tables[g][kept - 1]
                if state and lists.lowest_write(state, local) < local:
                    return True
        return False

    def _fill(self, plan: FirstPlan, g: int, copies: list[CopyPair]) -> tuple[int, ...]:
        """Take a group's blocks; what the worker appends to a table that has the hit."""
        table, fresh, source = plan.tables[g], plan.fresh[g], plan.sources[g]
        blocks = self._take(g, len(fresh), plan.unzeroed[g])
        for slot, block in zip(fresh, blocks, strict=True):
            assert not table[slot]
            table[slot] = block
        if source:
            self.pool.hold_many(blocks[:1])
            self._queue(copies, source, blocks[0])
        known = len(plan.hit.blocks[g])
        return tuple([table[s] for s in fresh if s < known] + table[known:])

    def _queue(self, copies: list[CopyPair], source: int, destination: int) -> None:
        """Queue a copy; both of its endpoints are held already."""
        assert self.pool.refs[source] > 0
        assert self.pool.refs[destination] > 0
        pair = BlockId(source), BlockId(destination)
        self.lists.queue_copy(pair)
        copies.append(pair)

    # --- later grants ---------------------------------------------------------------------------

    def later(self, r: Request, new: int, lookahead: int) -> Grant:
        """Grant more, or refuse and change nothing but the give-back. O(groups + blocks)."""
        layout = self.layout
        end = r.computed + new
        reserve = min(end + lookahead, layout.max_model_len)
        need = self._count_states(r, end) if layout.recurrent_ids else 0
        for g in layout.full_ids:
            more = -(-reserve // layout.sizes[g]) - len(r.tables[g])
            if more > 0:
                need += more
        if need > self.pool.free.count:
            return self._refusal(r)
        if not need:
            return Grant(True, layout.nothing, r.table())
        copies: list[CopyPair] = []
        moves: list[int] = []
        new_blocks: list[tuple[int, ...]] = []
        for g in range(layout.num_groups):
            if layout.recurrent[g]:
                new_blocks.append(self._extend_states(r, g, end, moves))
            else:
                more = -(-reserve // layout.sizes[g]) - len(r.tables[g])
                blocks = self._take(g, more, 0) if more > 0 else []
                if blocks:
                    r.extend(g, blocks)
                new_blocks.append(tuple(blocks))
        for g in moves:
            self._move(r, g, r.tables[g][(end - 1) // layout.sizes[g]], copies)
        return Grant(True, cast(Tables, tuple(new_blocks)), r.table(), tuple(copies))

    def _count_states(self, r: Request, end: int) -> int:
        """Give back states before the one the chunk starts from; how many blocks states need."""
        layout, need = self.layout, 0
        length_of = self.pool.index.length_of
        for g in layout.recurrent_ids:
            size, table = layout.sizes[g], r.tables[g]
            if r.low[g] < (r.computed - 1) // size:
                self._give_back(r, g, (r.computed - 1) // size)
            last = (end - 1) // size
            if last >= len(table) or length_of[table[last]]:
                need += 1
        return need

    def _give_back(self, r: Request, g: int, needed: int) -> None:
        """States in slots before `needed` are not needed any more."""
        table = r.tables[g]
        slots = [slot for slot in range(needed - 1, r.low[g] - 1, -1) if table[slot]]
        if slots:
            self.fences.release([table[slot] for slot in slots], r.last_step)
            r.clear_slots(g, slots)
        r.low[g] = needed

    def _extend_states(self, r: Request, g: int, end: int, moves: list[int]) -> tuple[int, ...]:
        """Where the chunk's state goes: to a new slot, or over the one that it starts from."""
        table, slot = r.tables[g], (end - 1) // self.layout.sizes[g]
        missing = slot - len(table)
        if missing >= 0:
            grown = [0] * missing + self._take(g, 1, 0)
            r.extend(g, grown)
            return tuple(grown)
        assert table[slot], "a chunk ends where its request has no state"
        if self.pool.index.length_of[table[slot]]:
            moves.append(g)
        return ()

    def _move(self, r: Request, g: int, own: int, copies: list[CopyPair]) -> None:
        """The owner's partial tail: a copy takes over its key, and may be handed off."""
        index = self.pool.index
        digest, length = index.digest_of[own], index.length_of[own]
        assert length, f"block {own} has no key to move"
        moved = self._take(g, 1, 1)[0]
        self.pool.hold_many([own])
        index.unpublish_many([own])
        index.publish(moved, g, digest, length)
        self.offers.add(r, g, moved, length)
        self._queue(copies, own, moved)
