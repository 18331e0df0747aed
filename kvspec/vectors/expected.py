"""What an engine may answer, worked out from what the judge knows, as the checks of a vector.

Where the rules leave a choice, the checks allow every choice, and the case goes on with the one
that the reference made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET, UnsetType

from kvspec.spec import clauses as c
from kvspec.spec import events as ev
from kvspec.spec.case import Case, Ledger
from kvspec.spec.chunks import block_fits_no_step, free_from
from kvspec.spec.clauses import Clause, Profile
from kvspec.spec.judge_end import held_blocks
from kvspec.spec.judge_grant import Outlook, foresee
from kvspec.spec.judge_lookup import serving_blocks
from kvspec.spec.lookup import hit_limit
from kvspec.spec.state import Forward, State, read_slots, touched_blocks, written_slots
from kvspec.spec.tables import Fresh, Kept, Private, Slot
from kvspec.spec.types import NULL_BLOCK, BlockId, GroupId

from .model import Bounds, Check, Number, Predicate
from .naming import Naming

Refusal = str | UnsetType


def check(field: str, pattern: Any, clause: Clause | str, of: str | UnsetType = UNSET) -> Check:
    """A check, its clause by id."""
    return Check(field, pattern, clause if isinstance(clause, str) else clause.id, of)


def either(patterns: Iterable[Any]) -> Any:
    """The first of these, or another; just the first where there is no other."""
    different: list[Any] = []
    for pattern in patterns:
        if pattern not in different:
            different.append(pattern)
    return Predicate(one_of=tuple(different)) if len(different) > 1 else different[0]


@dataclass(slots=True)
class Answered:
    """An event, the reference's answer, the states around it, and the names given so far."""

    before: State
    event: Any
    seen: Any
    after: State
    naming: Naming

    def refusal(self) -> Refusal:
        """The clause by which the event is an error, if it is one."""
        if not isinstance(self.seen, ev.Rejection):
            return UNSET
        return (c.TRUNC_ERROR if isinstance(self.event, ev.Truncate) else c.ALLOC_NOTHING).id

    def checks(self) -> tuple[Check, ...]:
        """What is allowed, in the order in which it is to be looked at."""
        find = _ANSWERS.get(type(self.event))
        refused = isinstance(self.seen, ev.Rejection)
        return tuple(find(self)) if find and not refused else ()

    def may_skip(self) -> bool:
        """Whether an engine without this event comes to the same state without it."""
        before, event = self.before, self.event
        if before.last_lookup is not None:
            return False  # whoever goes without it still has its hit
        match event:
            case ev.TakeZeroing():
                return not before.zero_due and not self.seen.blocks
            case ev.TakeCopies():
                return before.open is not None and not before.open.work.copies
            case ev.TakeOffloads():
                return not before.offers
            case ev.ReleaseRetained():
                return not any(step <= event.fence for step, _ in before.retained)
        return False


# --- hits -----------------------------------------------------------------------------------------


def _lookup(answered: Answered) -> Iterator[Check]:
    seen = answered.seen
    request = answered.before.requests[answered.event.request]
    limit = hit_limit(answered.before.config, len(request.prefix))
    yield check("num_tokens", Predicate(number=Number(0, limit)), c.HIT_LIMIT)
    if isinstance(seen, ev.ConnectorHit):
        yield check("num_tokens", seen.num_tokens, c.HIT_CONNECTOR)
        yield check("diverged", seen.diverged, c.HIT_CONNECTOR)
    else:
        yield check("num_tokens", seen.num_tokens, c.HIT_LENGTH)
    if not getattr(seen, "diverged", False):
        shape = tuple(tuple(block != NULL_BLOCK for block in table) for table in seen.blocks)
        yield check("blocks", Predicate(shape=shape), c.HIT_SHAPE)
    yield check("blocks", _found(answered), c.HIT_FOUND)
    yield check("shared_prefix_boundary", seen.shared_prefix_boundary, c.HIT_BOUNDARY)


def _found(answered: Answered) -> tuple[Any, ...]:
    """In each slot the block that the reference found, or another that serves as well."""
    lookup = answered.after.last_lookup
    assert lookup is not None
    prefix = answered.before.requests[lookup.request].prefix
    tables = []
    for g, table in enumerate(lookup.blocks):
        state, slots = lookup.states[g], []
        length = lookup.num_tokens if state is None else state
        for slot, block in enumerate(table):
            serving = serving_blocks(answered.before, prefix, GroupId(g), slot, length)
            serving = serving if block != NULL_BLOCK else frozenset()
            slots.append(either(answered.naming.all((block, *sorted(serving)))))
        tables.append(tuple(slots))
    return tuple(tables)


def _truncate(answered: Answered) -> Iterator[Check]:
    yield check("blocks", answered.naming.tables(answered.seen.blocks), c.TRUNC_VIEW)


# --- grants ---------------------------------------------------------------------------------------


def _allocate(answered: Answered) -> Iterator[Check]:
    case = Case(answered.before, Profile.ACCOUNTING, Ledger())
    outlook = foresee(case, answered.event)
    given = case.draft.request(answered.event.request).tables
    seen, config = answered.seen, answered.before.config
    if outlook.waits_for:
        yield check("granted", False, c.STEP_DEFER)
    else:
        if outlook.alone:
            room = outlook.answers(config.num_blocks - 1)
            yield check("granted", either((seen.granted, *room)), c.LIVE_ALONE)
        room = outlook.answers(case.draft.num_free)
        yield check("granted", either((seen.granted, *room)), c.ALLOC_CAPACITY)
    if seen.granted:
        yield from _Granted(answered, case, outlook).checks()
        return
    nothing: tuple[Any, ...] = ((),) * len(config.groups)
    kept = answered.before.requests[answered.event.request].tables
    tables = (seen.table, kept or nothing, given or nothing)
    names = [answered.naming.tables(table) for table in tables]
    yield check("table", either(names), c.ALLOC_REFUSAL)
    yield check("new_blocks", nothing, c.ALLOC_REFUSAL)
    yield check("copies", (), c.ALLOC_REFUSAL)


@dataclass(slots=True)
class _Granted:
    """A grant, slot by slot; `held` are the blocks that can be taken no more."""

    answered: Answered
    case: Case
    outlook: Outlook
    held: set[BlockId] = field(default_factory=set)

    def checks(self) -> Iterator[Check]:
        """All that a grant says."""
        seen, naming, ask = self.answered.seen, self.answered.naming, self.outlook.ask
        self.held = {*self.case.draft.refs, *ask.hit_blocks}
        tables = [
            tuple(self.slot(slot, block) for slot, block in zip(slots, table, strict=True))
            for slots, table in zip(ask.slots, seen.table, strict=True)
        ]
        yield check("table", tuple(tables), c.TABLE_SHAPE)
        yield from self.copies()
        new = [tuple(block for block in blocks if block) for blocks in seen.new_blocks]
        lists = tuple(Predicate(blocks=naming.all(blocks)) for blocks in new)
        yield check("new_blocks", lists, c.TABLE_NEW)
        if ask.request.worker and ask.span.new:
            yield check("new_blocks", tuple(self.places()), c.TABLE_WORKER)

    def slot(self, slot: Slot, block: BlockId) -> Any:
        """What may stand in a slot of the table."""
        if isinstance(slot, Fresh):
            return self.taken(block, c.ALLOC_FREE, slot.external)
        if isinstance(slot, Private):
            return self.taken(block, c.COW_HITTER)
        optional = isinstance(slot, Kept) and slot.optional
        others = (slot.block, NULL_BLOCK) if optional else ()
        return either(self.answered.naming.all((block, *others)))

    def taken(self, block: BlockId, clause: Clause, external: bool = False) -> Any:
        """Any block that is free may be taken; the case goes on where it is one like this one."""
        naming, draft = self.answered.naming, self.case.draft
        barred = set(self.held)
        if external:
            config = draft.config
            barred |= {b for work in draft.in_flight for b in touched_blocks(config, work)}
        others = [naming.of(b) for b in sorted(naming.blocks) if b not in barred and b != block]
        self.held.add(block)
        if block in naming.blocks:
            others.append(Predicate(fresh=naming.new()))
            return Predicate(one_of=(naming.of(block), *others), clause=clause.id)
        fresh = Predicate(fresh=naming.bind(block))
        if others:
            return Predicate(one_of=(fresh, *others), clause=clause.id)
        return Predicate(fresh=fresh.fresh, clause=clause.id)

    def copies(self) -> Iterator[Check]:
        """From a hit into the private block, from an owner's block into any that is free."""
        seen, naming, ask = self.answered.seen, self.answered.naming, self.outlook.ask
        pairs: list[tuple[Any, Any]] = [
            (naming.of(slot.source), naming.of(block))
            for slots, table in zip(ask.slots, seen.table, strict=True)
            for slot, block in zip(slots, table, strict=True)
            if isinstance(slot, Private)
        ]
        clause = c.COW_HITTER if pairs else c.COW_OWNER
        moved = [pair for pair in seen.copies if pair[0] in self.outlook.moves]
        assert len(moved) < 2, "the order of two moves would show in what is released"
        pairs += [(naming.of(s), self.taken(d, c.ALLOC_FREE)) for s, d in moved]
        yield check("copies", Predicate(copies=tuple(pairs)), clause)

    def places(self) -> Iterator[Any]:
        """Where the worker needs to find the new blocks of each group that it reads or writes.

        Another list that puts them there is allowed, but the worker's table differs from then on.
        """
        seen, ask = self.answered.seen, self.outlook.ask
        worker, span = ask.request.worker, ask.span
        tables = tuple(old + new for old, new in zip(worker, seen.new_blocks, strict=True))
        forward = Forward(
            self.answered.event.request, ask.request.prefix, span.start, span.end, tables
        )
        config = self.answered.before.config
        slots = {(g, slot) for g, slot, _ in written_slots(config, forward)}
        slots |= set(read_slots(config, forward))
        for g, new in enumerate(seen.new_blocks):
            first = len(worker[g])
            needed = sorted(slot - first for group, slot in slots if group == g and slot >= first)
            places = tuple((i, self.answered.naming.of(new[i])) for i in needed)
            yield either((self.answered.naming.all(new), Predicate(places=places)))


# --- the step -------------------------------------------------------------------------------------


def _take_zeroing(answered: Answered) -> Iterator[Check]:
    before, naming = answered.before, answered.naming
    due = naming.all(sorted(before.zero_due & before.refs.keys()))
    allowed = naming.all(sorted(before.zero_allowed))
    yield check("blocks", Predicate(bounds=Bounds(least=due)), c.ALLOC_ZEROED)
    yield check("blocks", Predicate(bounds=Bounds(most=allowed)), c.ALLOC_ZEROED_ONLY)


def _take_copies(answered: Answered) -> Iterator[Check]:
    assert answered.before.open is not None
    queued = answered.before.open.work.copies
    pairs = tuple(map(answered.naming.all, queued))
    ends = answered.naming.all(end for pair in queued for end in pair)
    yield check("copies", Predicate(bags=(pairs,)), c.COPY_QUEUED)
    yield check("retained", Predicate(bags=(ends,)), c.COPY_RETAINED)


def _take_offloads(answered: Answered) -> Iterator[Check]:
    entries = []
    for name, offers in answered.before.offers.items():
        handed = tuple((o.group, answered.naming.of(o.block), o.boundary) for o in offers)
        entries.append((str(name), Predicate(bags=(handed,))))
    dying = answered.before.dead_offers and not entries
    yield check("offloads", Predicate(map=tuple(entries)), c.PIN_DIES if dying else c.PIN_HANDOFF)


def _end_step(answered: Answered) -> Iterator[Check]:
    yield check("step", answered.seen.step, c.STEP_NUMBER)


def _release_retained(answered: Answered) -> Iterator[Check]:
    yield check("blocks", answered.naming.all(answered.seen.blocks), c.FENCE_RETAINED)


def _detach(answered: Answered) -> Iterator[Check]:
    request = answered.before.requests[answered.event.request]
    pinned = answered.naming.all(pin.block for pin in request.pins)
    blocks = answered.naming.all(b for table in held_blocks(request.tables) for b in table)
    yield check("blocks", Predicate(bags=(pinned, blocks)), c.REF_DETACHED)


def _reset(answered: Answered) -> Iterator[Check]:
    yield check("done", answered.seen.done, c.EVICT_RESET)


def _chunk(answered: Answered) -> Iterator[Check]:
    event = answered.event
    if event.start < free_from(event) and block_fits_no_step(event) and event.wanted:
        yield check("num_tokens", Predicate(number=Number(1)), c.CHUNK_ADVANCE)
    yield check("num_tokens", answered.seen.num_tokens, c.CHUNK_END)


_ANSWERS: dict[type[ev.Event], Callable[[Answered], Iterator[Check]]] = {
    ev.Lookup: _lookup,
    ev.LookupForConnector: _lookup,
    ev.Truncate: _truncate,
    ev.Allocate: _allocate,
    ev.TakeZeroing: _take_zeroing,
    ev.TakeCopies: _take_copies,
    ev.TakeOffloads: _take_offloads,
    ev.EndStep: _end_step,
    ev.ReleaseRetained: _release_retained,
    ev.Detach: _detach,
    ev.Reset: _reset,
    ev.Chunk: _chunk,
}
"""What each answer that says anything is held to."""
