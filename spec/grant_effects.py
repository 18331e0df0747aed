"""What a grant does, once it is allowed: who holds what, what is queued, written and keyed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import clauses as c
from . import events as ev
from . import marks as m
from .case import Case
from .content import POISON
from .registration import register
from .state import (
    Entry,
    Forward,
    HandOff,
    LastLookup,
    Request,
    read_slots,
    touched_blocks,
    written_slots,
)
from .tables import Fresh, Kept, Private, Slots, Span
from .types import NULL_BLOCK, BlockId, Connector, GroupId, RequestId, Table


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request asks for: its hit, the tokens it is about, the tables it must end with."""

    event: ev.Allocate
    request: Request
    hit: LastLookup | None
    span: Span
    slots: tuple[Slots, ...]

    @property
    def hit_blocks(self) -> Table:
        """The blocks of the hit that the table keeps or copies from."""
        kept: list[BlockId] = []
        for slots in self.slots if self.hit else ():
            kept += [slot.block for slot in slots if isinstance(slot, Kept)]
            kept += [slot.source for slot in slots if isinstance(slot, Private)]
        return tuple(kept)

    @property
    def optional_blocks(self) -> set[BlockId]:
        """Those that the table may do without."""
        kept = (slot for slots in self.slots for slot in slots if isinstance(slot, Kept))
        return {slot.block for slot in kept if slot.optional}


@dataclass(frozen=True, slots=True)
class Handed:
    """A block that the grant took from the pool, and what for; `moved_from` for an owner's copy."""

    block: BlockId
    group: GroupId
    slot: Fresh | Private
    moved_from: BlockId | None = None

    @property
    def external(self) -> bool:
        """Whether a connector will write it."""
        return isinstance(self.slot, Fresh) and self.slot.external


def apply_grant(case: Case, ask: Ask, seen: ev.Grant, moves: dict[BlockId, GroupId]) -> None:
    """Check each choice of the target and work out what follows from it."""
    _hold_hits(case, ask)
    handed = _check_tables(case, ask, seen) + _check_copies(case, ask, seen, moves)
    for one in handed:
        _take(case, ask, one)
    _queue_copies(case, ask, handed)
    for one in handed:
        if one.moved_from is not None:
            _move_entry(case, ask, one)
    forward = _announce(case, ask, seen, handed)
    if forward is not None:
        _check_writes(case, forward)
    _record(case, ask, seen, forward)
    register(case, ask.event.request, ask.span.start, ask.span.end, ask.event.delay_caching)
    for one in handed:
        if isinstance(one.slot, Private) and case.draft.entry(one.block) is None:
            case.owe(c.COW_UNKEYED, "key", one.block)


def _hold_hits(case: Case, ask: Ask) -> None:
    """All hits are held, in all groups, before any block is taken: by the table, or as sources."""
    for block in ask.hit_blocks:
        if case.draft.count(block) == 0:
            case.mark(m.HIT_LEAVES_FREE_LIST)
        case.draft.hold(block)


# --- the choices --------------------------------------------------------------------------------


def _check_tables(case: Case, ask: Ask, seen: ev.Grant) -> list[Handed]:
    """Slot by slot; returns the blocks that came from the pool."""
    handed: list[Handed] = []
    for g, (slots, table) in enumerate(zip(ask.slots, seen.table, strict=True)):
        case.require(c.TABLE_SHAPE, len(table), len(slots), f"slots of group {g}")
        for i, (slot, block) in enumerate(zip(slots, table, strict=False)):
            if block == slot.block:
                continue
            where = f"group {g}, slot {i}"
            if isinstance(slot, Fresh | Private):
                if isinstance(slot, Private):
                    case.require(c.COW_HITTER, block == slot.source, False, f"{where} is shared")
                handed.append(Handed(block, GroupId(g), slot))
            elif isinstance(slot, Kept) and slot.optional and block == NULL_BLOCK:
                case.draft.drop(slot.block)
            else:
                case.require(c.TABLE_SHAPE, block, slot.block, where)
    return handed


def _check_copies(
    case: Case, ask: Ask, seen: ev.Grant, moves: dict[BlockId, GroupId]
) -> list[Handed]:
    """The copies are those of partial hits and of moved tails; returns the latter's blocks."""
    hits = sorted(
        (slot.source, block)
        for slots, table in zip(ask.slots, seen.table, strict=True)
        for slot, block in zip(slots, table, strict=False)
        if isinstance(slot, Private)
    )
    sources = {source for source, _ in hits}
    if hits:
        ours = sorted(pair for pair in seen.copies if pair[0] in sources)
        case.require(c.COW_HITTER, ours, hits, "copies")
        case.mark(m.HITTER_COPIES)
        if len(hits) > 1:
            case.mark(m.GROUPS_COPY)
    others = [pair for pair in seen.copies if pair[0] not in sources]
    if moves or others:
        case.require(c.COW_OWNER, sorted(source for source, _ in others), sorted(moves))
    if not others:
        return []
    own = {block for table in ask.request.tables for block in table} - {NULL_BLOCK}
    case.require(c.COPY_SOURCE, [source for source, _ in others], own)
    case.mark(m.OWNER_COPIES)
    groups = {block: GroupId(g) for g, table in enumerate(seen.table) for block in table}
    return [Handed(d, groups.get(s, GroupId(0)), Fresh(), s) for s, d in others]


def _take(case: Case, ask: Ask, one: Handed) -> None:
    """A block leaves the pool: nobody held it, and it loses its key."""
    block, draft, config = one.block, case.draft, case.config
    where = f"block {block}"
    case.require(c.ALLOC_RANGE, block, range(1, config.num_blocks))
    if ask.hit_blocks:
        case.require(c.ALLOC_HITS, [block], ask.hit_blocks, where)
    case.require(c.ALLOC_FREE, draft.count(block), 0, where)
    entry = draft.entry(block)
    if entry is not None:
        _mark_eviction(case, entry)
        draft.unpublish(block)
        case.owe(c.EVICT_TAKEN, "key", block)
    draft.hold(block)
    _bury_offers(case, block)
    current, allowed, due = draft.open, draft.zero_allowed, draft.zero_due
    if one.external:
        if draft.in_flight:
            touched = set().union(*(touched_blocks(config, work) for work in draft.in_flight))
            case.require(c.FENCE_EXTERNAL, [block], touched, where)
        draft.put("contents", block, POISON)
        taken = tuple(b for b in current.work.taken if b != block)
        allowed, due = allowed - {block}, due - {block}
    else:
        taken, allowed = (*current.work.taken, block), allowed | {block}
        fresh = one.moved_from is None and isinstance(one.slot, Fresh)
        due = due | {block} if fresh and config.groups[one.group].zeroed else due - {block}
    work = replace(current.work, taken=taken)
    draft.set(open=replace(current, work=work), zero_allowed=allowed, zero_due=due)


def _mark_eviction(case: Case, entry: Entry) -> None:
    case.mark(m.EVICTION)
    group_id, digest = entry.key
    others = (GroupId(g) for g in case.config.ids() if g != group_id)
    if any((other, digest) in case.draft.index for other in others):
        case.mark(m.LOPSIDED_EVICTION)


def _bury_offers(case: Case, block: BlockId) -> None:
    """A hand-off that nobody drained is gone when its block is."""
    for name, offers in case.before.offers.items():
        left = tuple(offer for offer in case.draft.offers.get(name, ()) if offer.block != block)
        if not left:
            case.kill_offers(name)
        elif left != offers:
            case.draft.put("offers", name, left)


# --- what follows -------------------------------------------------------------------------------


def _queue_copies(case: Case, ask: Ask, handed: list[Handed]) -> None:
    """Both endpoints of each copy are held until released; no copy of the step meets another."""
    if not handed:
        return
    current = case.draft.open
    queued = list(current.work.copies)
    for one in handed:
        source = one.slot.source if isinstance(one.slot, Private) else one.moved_from
        if source is None:
            continue
        ends = {end for pair in queued for end in pair}
        case.require(c.COPY_CONFLICT, [one.block], ends, "destination")
        case.require(c.COPY_CONFLICT, [source], {d for _, d in queued}, "source")
        queued.append((source, one.block))
        if one.moved_from is None:
            case.draft.hold(one.block)
            if case.draft.entry(source) is not None:
                case.owe(c.COW_KEPT, "key", source)
        else:
            case.draft.hold(source)
    work = replace(current.work, copies=tuple(queued))
    case.draft.set(open=replace(current, work=work))


def _move_entry(case: Case, ask: Ask, one: Handed) -> None:
    """The copy's destination takes over the key, and is what a connector is handed."""
    assert one.moved_from is not None
    entry = case.draft.entry(one.moved_from)
    if entry is None:
        return
    case.draft.unpublish(one.moved_from)
    case.draft.publish(one.block, replace(entry, moved=True))
    case.owe(c.COW_MOVED, "key", one.moved_from)
    case.owe(c.COW_MOVED, "key", one.block)
    if case.config.connector is not Connector.NONE:
        name = ask.event.request
        step = case.draft.open.work.number
        offer = HandOff(one.group, one.block, entry.length, entry.prefix, step)
        offers = case.draft.offers.get(name, ())
        case.draft.put("offers", name, (*offers, offer))
        case.mark(m.OFFERED)


def _announce(case: Case, ask: Ask, seen: ev.Grant, handed: list[Handed]) -> Forward | None:
    """What the worker hears: the whole table first, later what is new. It then computes by it."""
    for g, new in enumerate(seen.new_blocks):
        came = [h.block for h in handed if h.group == g and h.moved_from is None]
        said = [block for block in new if block != NULL_BLOCK]
        if came or said:
            case.require(c.TABLE_NEW, said, came, f"group {g}")
    if not ask.span.new:
        return None
    worker = ask.request.worker
    if worker:
        worker = tuple(old + new for old, new in zip(worker, seen.new_blocks, strict=True))
    else:
        worker = seen.table
    case.draft.update(ask.event.request, worker=worker)
    span = ask.span
    forward = Forward(ask.event.request, ask.request.prefix, span.start, span.end, worker)
    if span.end > len(ask.request.prefix):
        case.mark(m.DRAFTS)
    if ask.request.worker:
        _check_worker(case, forward, seen)
    return forward


def _check_worker(case: Case, forward: Forward, seen: ev.Grant) -> None:
    """Where the step reads or writes, the worker's table is the manager's."""
    slots = [(g, slot) for g, slot, _ in written_slots(case.config, forward)]
    slots += read_slots(case.config, forward)
    ours, theirs = forward.tables, seen.table
    apart = (
        (g, slot) for g, slot in slots if ours[g][slot : slot + 1] != theirs[g][slot : slot + 1]
    )
    g, slot = next(apart, slots[0])
    here = ours[g][slot] if slot < len(ours[g]) else None
    case.require(c.TABLE_WORKER, here, theirs[g][slot], f"group {g}, slot {slot}")


def _check_writes(case: Case, forward: Forward) -> None:
    """Nothing that a key promises, another request holds, or a connector reads is overwritten."""
    draft = case.draft
    pins = {p.block for r in draft.requests.values() for p in r.pins}
    pins |= {p.block for d in draft.detached.values() for p in d.pins}
    for g, slot, position in written_slots(case.config, forward):
        block = forward.tables[g][slot]
        entry, shared = draft.entry(block), draft.count(block) > 1
        if entry is not None or shared:
            promised = entry is not None and case.accounting and entry.length > position
            taken = shared and _held_by_another(case, forward.request, block)
            ruled_out = {block} if promised or taken else set()
            where = f"group {g}, slot {slot}, from position {position}"
            case.require(c.COW_WRITE, [block], ruled_out, where)
        if pins:
            case.require(c.PIN_CONTENT, [block], pins)


def _held_by_another(case: Case, name: RequestId, block: BlockId) -> bool:
    return any(
        block in table
        for other, request in case.draft.requests.items()
        if other != name
        for table in request.tables
    )


def _keeps_states(ask: Ask, seen: ev.Grant) -> bool:
    """Whether the table still has every local state that it may do without."""
    return all(
        block == slot.block
        for slots, table in zip(ask.slots, seen.table, strict=True)
        for slot, block in zip(slots, table, strict=True)
        if isinstance(slot, Kept) and slot.optional
    )


def _record(case: Case, ask: Ask, seen: ev.Grant, forward: Forward | None) -> None:
    """The request and the pass after the grant."""
    name, span = ask.event.request, ask.span
    changes: dict[str, object] = {"tables": seen.table}
    if ask.hit is not None:
        resumable = ask.hit.resumable and _keeps_states(ask, seen)
        changes |= {"computed": span.start, "local": span.local, "registered": span.local}
        changes |= {"resumable": resumable or not span.external, "loading": span.external > 0}
    case.draft.update(name, **changes)
    current = case.draft.open
    work = current.work
    if forward is not None:
        work = replace(work, forwards=(*work.forwards, forward))
    granted = (*current.granted, (name, ask.hit_blocks))
    case.draft.set(open=replace(current, work=work, granted=granted))
