"""What the books may show after an event, as checks of a vector: as `judge_snapshot` has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvspec.spec import clauses as c
from kvspec.spec.state import State
from kvspec.spec.types import BlockId

from .expected import check
from .model import Check, Predicate
from .naming import Naming


def books(state: State, naming: Naming) -> Iterator[Check]:
    """All that may be shown in this state, in the order in which it is to be looked at."""
    pure = state.last_lookup is not None
    for due in state.due:
        if due.what == "key":
            clause, name = due.clause, naming.of(due.block)
            yield check("keys", _keys(state, naming, due.block), clause, name)
    for due in state.due:
        if due.what == "count":
            count, name = state.refs.get(due.block, 0), naming.of(due.block)
            yield check("refcounts", count, due.clause, name)
    counts = tuple((naming.of(block), count) for block, count in sorted(state.refs.items()))
    yield check("refcounts", Predicate(map=counts), c.HIT_PURE if pure else c.REF_COUNT)
    keys = tuple((naming.of(b), _keys(state, naming, b)) for b in sorted(state.keys))
    yield check("keys", Predicate(map=keys), c.HIT_PURE if pure else c.REG_ONLY)
    if pure and state.free_list is not None:
        yield check("free_list", Predicate(unchanged=True), c.HIT_PURE)
    yield from _free_list(state, naming)
    pins = [p.block for r in state.requests.values() for p in r.pins]
    pins += [p.block for d in state.detached.values() for p in d.pins]
    yield check("pins", Predicate(bags=(naming.all(pins),)), c.REF_PINS)
    tables = tuple(
        (str(name), naming.tables(request.tables))
        for name, request in state.requests.items()
        if any(request.tables)
    )
    yield check("tables", Predicate(map=tables), c.TABLE_SHOWN)


def _keys(state: State, naming: Naming, block: BlockId) -> tuple[Any, ...]:
    """A block has the key of its entry, which names its prefix and no other."""
    entry = state.keys.get(block)
    if entry is None:
        return ()
    group, digest = entry.key
    clause = c.HASH_STABLE if (group, digest) in naming.digests else c.HASH_INJECTIVE
    came = (group, digest) not in state.digests or block not in state.shown
    key = Predicate(key=(int(group), naming.digest(group, digest)))
    if came:
        key.clause = clause.id
    return (key,)


def _free_list(state: State, naming: Naming) -> Iterator[Check]:
    yield check("free_list", Predicate(distinct=True), c.FREE_ONCE)
    held = naming.all(sorted(state.refs))
    yield check("free_list", Predicate(pool_without=held), c.FREE_EXACT)
    for blocks in state.freed:
        keyed = [b for b in blocks if b not in state.refs and b in state.keys]
        if len(keyed) > 1:
            yield check("free_list", Predicate(order=naming.all(keyed[::-1])), c.FREE_TAIL)
