"""What a grant would look like, worked out before anything is taken (design 4.3, 4.4)."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvspec.spec.digests import Prefix
from kvspec.spec.types import NULL_BLOCK, BlockId, Config, Group, GroupId, ceil_div

from .lookup import Result
from .pool import Pool

Offer = tuple[GroupId, BlockId, int]
FRESH = BlockId(-1)
"""Stands in a planned table where a block has to be taken."""


@dataclass(slots=True)
class Request:
    """A request that has not ended. `registered` tokens have been looked at for keying."""

    prefix: Prefix
    num_prompt_tokens: int
    tables: list[list[BlockId]] = field(default_factory=list)
    computed: int = 0
    local: int = 0
    registered: int = 0
    loading: bool = False
    last_step: int = 0
    pins: list[BlockId] = field(default_factory=list)
    offers: list[Offer] = field(default_factory=list)


@dataclass(slots=True)
class Plan:
    """A grant before it is given: tables with FRESH slots, and the copies they imply.

    `private` lists (group, slot, shared block); `moves` (group, slot) of keyed tails that the
    chunk would overwrite.
    """

    start: int
    end: int
    tables: list[list[BlockId]]
    private: list[tuple[int, int, BlockId]]
    moves: list[tuple[int, int]]

    @property
    def hits(self) -> list[BlockId]:
        """The blocks of the hit that the request will hold or copy from."""
        kept = [b for table in self.tables for b in table if b not in (NULL_BLOCK, FRESH)]
        return kept + [source for _, _, source in self.private]

    @property
    def num_fresh(self) -> int:
        """How many blocks it takes from the pool, hits aside."""
        return sum(table.count(FRESH) for table in self.tables) + len(self.moves)


def slots(config: Config, group: Group, end: int, lookahead: int) -> int:
    """How many slots a group needs; only full groups reserve slots for lookahead."""
    if not group.recurrent:
        end = min(end + lookahead, config.max_model_len)
    return ceil_div(end, group.block_size)


def plan_first(config: Config, hit: Result, new: int, external: int, lookahead: int) -> Plan:
    """The tables of a first grant: the hit, then what it lacks."""
    local = hit.num_tokens
    plan = Plan(local + external, local + external + new, [], [], [])
    for g, group in enumerate(config.groups):
        table, size = list(hit.blocks[g]), group.block_size
        if group.recurrent and table and hit.states[g] != local:
            table[-1] = NULL_BLOCK
        if local % size and table and table[-1] != NULL_BLOCK:
            plan.private.append((g, len(table) - 1, table[-1]))
            table[-1] = FRESH
        more = slots(config, group, plan.end, lookahead) - len(table)
        table += [NULL_BLOCK if group.recurrent else FRESH] * more
        if group.recurrent and external:
            table[(plan.start - 1) // size] = FRESH
        if group.recurrent and new and table[(plan.end - 1) // size] == NULL_BLOCK:
            table[(plan.end - 1) // size] = FRESH
        plan.tables.append(table)
    return plan


def plan_next(config: Config, pool: Pool, r: Request, new: int, lookahead: int) -> Plan:
    """The tables of a later grant: what the request has, and what it lacks."""
    plan = Plan(r.computed, r.computed + new, [], [], [])
    for g, group in enumerate(config.groups):
        table, size = list(r.tables[g]), group.block_size
        more = slots(config, group, plan.end, lookahead) - len(table)
        table += [NULL_BLOCK if group.recurrent else FRESH] * more
        last = (plan.end - 1) // size
        if group.recurrent and table[last] == NULL_BLOCK:
            table[last] = FRESH
        elif group.recurrent and table[last] in pool.keys:
            plan.moves.append((g, last))
        plan.tables.append(table)
    return plan


def written(config: Config, r: Request, start: int, end: int) -> list[tuple[BlockId, int]]:
    """The blocks that a chunk writes, each with the lowest position written in it."""
    found: list[tuple[BlockId, int]] = []
    for group, table in zip(config.groups, r.tables, strict=True):
        size = group.block_size
        if group.recurrent:
            found.append((table[(end - 1) // size], 0))
        else:
            for slot in range(start // size, ceil_div(end, size)):
                found.append((table[slot], max(start, slot * size)))
    return found
