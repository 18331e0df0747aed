"""Judging a snapshot: the target's books against what follows from its own observations."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TypeVar

from . import clauses as c
from . import events as ev
from .case import Case
from .state import Due, Key
from .types import BlockId, Digest, GroupId, Table

Value = TypeVar("Value")
Shown = Mapping[BlockId, tuple[tuple[GroupId, str], ...]]


def judge_snapshot(case: Case, _: ev.Snapshot, seen: ev.Books) -> None:
    """First what recent events owe, then everything."""
    if not case.accounting:
        return
    if case.before.last_lookup is not None:
        _lookup_changed_nothing(case, seen)
    settled = seen.keys == case.before.shown and case.before.keys is case.before.settled
    if seen.keys is not None:
        if not settled:
            _learn_names(case, seen.keys)
        for due in _owed(case, "key"):
            shown = _read(case, due.block, seen.keys.get(due.block, ()))
            case.settle(due, shown or None, _expected(case, due.block))
    if seen.refcounts is not None:
        counts = {block: n for block, n in seen.refcounts.items() if n}
        for due in _owed(case, "count"):
            case.settle(due, counts.get(due.block), case.before.refs.get(due.block))
        case.require(c.REF_COUNT, *_unspoken(case, "count", counts, case.before.refs))
    if seen.keys is not None:
        _all_keys(case, seen.keys, settled)
    if seen.free_list is not None:
        _free_list(case, seen.free_list)
    if seen.pins is not None:
        pins = [p.block for r in case.before.requests.values() for p in r.pins]
        pins += [p.block for d in case.before.detached.values() for p in d.pins]
        if pins or seen.pins:
            case.require(c.REF_PINS, seen.pins, pins)
    if seen.tables is not None:
        expected = {name: r.tables for name, r in case.before.requests.items() if any(r.tables)}
        case.require(c.TABLE_SHOWN, {n: t for n, t in seen.tables.items() if any(t)}, expected)
    case.draft.set(due=(), free_list=seen.free_list)


def _lookup_changed_nothing(case: Case, seen: ev.Books) -> None:
    if seen.refcounts is not None:
        counts = {block: n for block, n in seen.refcounts.items() if n}
        case.require(c.HIT_PURE, counts, dict(case.before.refs), "reference counts")
    if seen.keys is not None:
        keyed = {block for block, keys in seen.keys.items() if keys}
        case.require(c.HIT_PURE, keyed, set(case.before.keys), "keyed blocks")
    if seen.free_list is not None and case.before.free_list is not None:
        case.require(c.HIT_PURE, seen.free_list, case.before.free_list, "free list")


def _owed(case: Case, what: str) -> list[Due]:
    """Each debt is checked on its own, so that a wrong book is filed under what it breaks."""
    return [due for due in case.before.due if due.what == what]


def _unspoken(
    case: Case, what: str, observed: Mapping[BlockId, Value], allowed: Mapping[BlockId, Value]
) -> tuple[dict[BlockId, Value], dict[BlockId, Value]]:
    """Both without the blocks of which a clause of their own has just spoken, where they differ."""
    if observed == allowed:
        return dict(observed), dict(allowed)
    spoken = {due.block for due in _owed(case, what)}
    return (
        {block: value for block, value in observed.items() if block not in spoken},
        {block: value for block, value in allowed.items() if block not in spoken},
    )


def _expected(case: Case, block: BlockId) -> list[Key] | None:
    entry = case.before.keys.get(block)
    return None if entry is None else [entry.key]


def _read(case: Case, block: BlockId, keys: tuple[tuple[GroupId, str], ...]) -> list[Key]:
    """The keys shown of a block, in our digests where the name is known."""
    entry = case.before.keys.get(block)
    own = entry and entry.key
    found: list[Key] = []
    for group, name in keys:
        if own and own[0] == group and case.draft.digests.get(own) == name:
            found.append(own)
        else:
            found.append((group, case.draft.names.get((group, name), Digest(name.encode()))))
    return found


def _all_keys(case: Case, shown: Shown, settled: bool) -> None:
    """Every key. Where nothing changed since they were all right, they still are."""
    if settled:
        case.require(c.REG_ONLY, shown, case.before.shown)
        return
    expected = {block: [entry.key] for block, entry in case.before.keys.items()}
    observed = {block: _read(case, block, keys) for block, keys in shown.items() if keys}
    case.require(c.REG_ONLY, *_unspoken(case, "key", observed, expected))
    case.draft.set(settled=case.before.keys)


def _learn_names(case: Case, shown: Shown) -> None:
    """What the target calls a digest must name that digest and no other.

    Only a key that came to its block since the last snapshot says what a digest is called; one
    that stayed behind is a stale key, which other clauses are about.
    """
    for block, keys in shown.items():
        entry, before = case.before.keys.get(block), case.before.shown.get(block)
        if entry is None or len(keys) != 1 or keys == before or keys[0][0] != entry.group:
            continue
        group, name = keys[0]
        digest = entry.key[1]
        known: Digest | None = case.draft.names.get((group, name))
        if known is not None:
            case.require(c.HASH_INJECTIVE, known == digest, True, f"{name} names two prefixes")
        earlier: str | None = case.draft.digests.get((group, digest))
        if earlier is not None:
            case.require(c.HASH_STABLE, name, earlier, f"block {block}")
        if known is None:
            case.draft.put("names", (group, name), digest)
        if earlier is None:
            case.draft.put("digests", (group, digest), name)
    case.draft.set(shown=shown)


def _free_list(case: Case, free: Table) -> None:
    case.require(c.FREE_ONCE, len(free), len(set(free)))
    expected = {BlockId(b) for b in range(1, case.config.num_blocks)} - set(case.before.refs)
    case.require(c.FREE_EXACT, set(free), expected)
    place = {block: i for i, block in reversed([*enumerate(free)])}
    for blocks in case.before.freed:
        keyed = [b for b in blocks if b in place and b in case.before.keys]
        for head, tail in pairwise(keyed):
            case.require(c.FREE_TAIL, place[tail] < place[head], True, f"{tail} before {head}")
