"""Judging lookups and truncations (design 4.2, 4.9)."""

from __future__ import annotations

from . import clauses as c
from . import events as ev
from . import marks as m
from .case import Case
from .digests import Prefix
from .lookup import (
    Keyed,
    connector_hit,
    hit_limit,
    joint_hit,
    partial_tail,
    recurrent_reaches,
    serving_lengths,
    shared_prefix_boundary,
    truncated_slots,
)
from .state import LastLookup, State
from .types import NULL_BLOCK, BlockId, Config, Connector, GroupId, Tables, ceil_div


def keyed_for(state: State, prefix: Prefix) -> Keyed:
    """Which groups have a block keyed at which lengths of this prefix."""
    return lambda group_id, length: state.has_key(group_id, prefix, length)


def judge_lookup(case: Case, event: ev.Lookup, seen: ev.Hit) -> None:
    """The joint hit."""
    prefix = case.before.requests[event.request].prefix
    keyed, limit = keyed_for(case.before, prefix), hit_limit(case.config, len(prefix))
    _bounds(case, seen, limit)
    states = tuple(seen.num_tokens if g.recurrent else None for g in case.config.groups)
    _shape(case, seen.blocks, seen.num_tokens, states)
    if case.accounting:
        case.require(c.HIT_LENGTH, seen.num_tokens, joint_hit(case.config, keyed, limit))
        _found(case, seen.blocks, prefix, seen.num_tokens, states)
        _boundary(case, seen, keyed, limit)
    _remember(case, LastLookup(event.request, seen.blocks, seen.num_tokens, states))


def judge_lookup_for_connector(
    case: Case, event: ev.LookupForConnector, seen: ev.ConnectorHit
) -> None:
    """The hit as a connector is told it: attention's own where the connector supports that."""
    config, prefix = case.config, case.before.requests[event.request].prefix
    keyed, limit = keyed_for(case.before, prefix), hit_limit(config, len(prefix))
    _bounds(case, seen, limit)
    if case.accounting:
        allowed = joint_hit(config, keyed, limit), False
        if config.connector is Connector.DIVERGING:
            allowed = connector_hit(config, keyed, limit)
        case.require(c.HIT_CONNECTOR, (seen.num_tokens, seen.diverged), allowed)
    states = _states(case, seen, keyed, limit)
    _shape(case, seen.blocks, seen.num_tokens, states)
    if case.accounting:
        _found(case, seen.blocks, prefix, seen.num_tokens, states)
        _boundary(case, seen, keyed, limit)
    if seen.diverged:
        case.mark(m.DIVERGED_HIT)
    guessed = seen.diverged and not case.accounting
    _remember(case, LastLookup(event.request, seen.blocks, seen.num_tokens, states, guessed))


def _states(case: Case, seen: ev.ConnectorHit, keyed: Keyed, limit: int) -> tuple[int | None, ...]:
    """The length whose state each recurrent group brings; as the slots say when keys are hidden."""
    groups = case.config.groups
    if not seen.diverged:
        return tuple(seen.num_tokens if g.recurrent else None for g in groups)
    if case.accounting:
        reaches = recurrent_reaches(case.config, keyed, limit)
        return tuple(reaches.get(GroupId(i)) for i in case.config.ids())
    return tuple(
        len(blocks) * group.block_size if group.recurrent else None
        for group, blocks in zip(groups, seen.blocks, strict=False)
    )


def _bounds(case: Case, seen: ev.Hit | ev.ConnectorHit, limit: int) -> None:
    case.require(c.HIT_LIMIT, seen.num_tokens, limit)
    if seen.num_tokens:
        case.require(c.HIT_ALIGNED, seen.num_tokens, case.config.alignment)


def _shape(case: Case, blocks: Tables, num_tokens: int, states: tuple[int | None, ...]) -> None:
    """Slots per group, and which of them are null."""
    observed = [tuple(block != NULL_BLOCK for block in table) for table in blocks]
    case.require(c.HIT_SHAPE, observed, _allowed_shape(case.config, num_tokens, states))
    in_pool = range(case.config.num_blocks)
    for block in {block for table in blocks for block in table}:
        case.require(c.ALLOC_RANGE, block, in_pool)


def _allowed_shape(
    config: Config, num_tokens: int, states: tuple[int | None, ...]
) -> list[tuple[bool, ...]]:
    """For each slot of each group whether a block has to stand there."""
    shape: list[tuple[bool, ...]] = []
    for group, state in zip(config.groups, states, strict=True):
        if state is None:
            shape.append((True,) * ceil_div(num_tokens, group.block_size))
        else:
            slots = ceil_div(state, group.block_size)
            shape.append((False,) * (slots - 1) + (True,) if slots else ())
    return shape


def _found(
    case: Case,
    blocks: Tables,
    prefix: Prefix,
    num_tokens: int,
    states: tuple[int | None, ...],
) -> None:
    """Each block is keyed for the prefix at a length that serves its slot."""
    for g, table in enumerate(blocks):
        for slot, block in enumerate(table):
            if block == NULL_BLOCK:
                continue
            length = states[g] if states[g] is not None else num_tokens
            allowed = serving_blocks(case.before, prefix, GroupId(g), slot, length or 0)
            case.require(c.HIT_FOUND, block, allowed, f"group {g}, slot {slot}")


def serving_blocks(
    state: State, prefix: Prefix, group_id: GroupId, slot: int, length: int
) -> frozenset[BlockId]:
    """The blocks that may stand in a slot of a hit, of which the group serves `length` tokens."""
    lengths = serving_lengths(state.config, group_id, slot, length, len(prefix))
    keys = [(group_id, prefix.digest_at(n)) for n in lengths]
    nothing: frozenset[BlockId] = frozenset()
    return nothing.union(*(state.index.get(key, nothing) for key in keys))


def _boundary(case: Case, seen: ev.Hit | ev.ConnectorHit, keyed: Keyed, limit: int) -> None:
    allowed = shared_prefix_boundary(case.config, keyed, limit, seen.num_tokens)
    case.require(c.HIT_BOUNDARY, seen.shared_prefix_boundary, allowed)


def _remember(case: Case, lookup: LastLookup) -> None:
    if any(lookup.num_tokens % group.block_size for group in case.config.groups):
        case.mark(m.PARTIAL_HIT)
    entries = (case.before.keys.get(block) for table in lookup.blocks for block in table)
    if any(entry is not None and entry.moved for entry in entries):
        case.mark(m.MOVED_ENTRY_HIT)
    if _falls_back(case, lookup):
        case.mark(m.EAGLE_FALLS_BACK)
    case.draft.set(last_lookup=lookup)


def _falls_back(case: Case, lookup: LastLookup) -> bool:
    """Whether an eagle group is keyed inside the block behind a hit that ends on a block."""
    config, hit = case.config, lookup.num_tokens
    eagle = [GroupId(g) for g, group in enumerate(config.groups) if group.eagle]
    if not hit or not eagle or not config.fine:
        return False
    prefix = case.before.requests[lookup.request].prefix
    limit, keyed = hit_limit(config, len(prefix)), keyed_for(case.before, prefix)
    return any(
        hit % config.groups[g].block_size == 0 and partial_tail(config, g, keyed, hit, limit) > hit
        for g in eagle
    )


def judge_truncate(case: Case, event: ev.Truncate, seen: ev.View | ev.Rejection) -> None:
    """A view of the last lookup, however often it was cut before, at another length."""
    last = case.before.last_lookup
    assert last is not None
    last = last.whole or last
    sizes = [
        truncated_slots(case.config, GroupId(g), len(last.blocks[g]), event.num_tokens)
        for g in case.config.ids()
    ]
    if None in sizes or event.num_tokens > last.num_tokens:
        case.require(c.TRUNC_ERROR, isinstance(seen, ev.Rejection), True)
        case.mark(m.CUT_REFUSED)
        return
    case.require(c.LIVE_ANSWER, isinstance(seen, ev.Rejection), False)
    assert isinstance(seen, ev.View)
    cut = tuple(table[:size] for table, size in zip(last.blocks, sizes, strict=True))
    case.require(c.TRUNC_VIEW, seen.blocks, cut)
    states = tuple(s if s is None or s <= event.num_tokens else 0 for s in last.states)
    view = LastLookup(event.request, cut, event.num_tokens, states, last.guessed, last)
    case.draft.set(last_lookup=view)
