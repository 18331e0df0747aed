"""Judging `allocate` (design 4.3, 4.4, 4.5)."""

from __future__ import annotations

from dataclasses import dataclass

from . import clauses as c
from . import events as ev
from . import marks as m
from .case import Case
from .grant_effects import Ask, apply_grant
from .state import LastLookup, lowest_writes
from .tables import (
    Kept,
    Private,
    Span,
    first_full,
    first_recurrent,
    given_back,
    moved_tail,
    next_full,
    next_recurrent,
    num_fresh,
)
from .types import NULL_BLOCK, BlockId, GroupId, Tables


def judge_allocate(case: Case, event: ev.Allocate, seen: ev.Grant | ev.Rejection) -> None:
    """A grant, or its refusal."""
    if event.num_new_tokens == 0 and event.num_external_tokens == 0:
        case.require(c.ALLOC_NOTHING, isinstance(seen, ev.Rejection), True)
        return
    case.require(c.LIVE_ANSWER, isinstance(seen, ev.Rejection), False)
    assert isinstance(seen, ev.Grant)
    before = case.before.requests[event.request]
    outlook = foresee(case, event)
    _decide(case, outlook, seen)
    if seen.granted:
        apply_grant(case, outlook.ask, seen, outlook.moves)
    else:
        _refused(case, event, seen, before.tables)
    if before.refused and seen.granted:
        case.mark(m.REFUSED_THEN_GRANTED)
    case.draft.update(event.request, refused=not seen.granted)


# --- what is asked ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a grant would mean: `need` blocks leave the free list, or as few as `least`.

    `moves` are the owner's keyed tails whose entries have to move. The hit blocks in `waits_for`
    are still written in this step: then it may not be granted. `alone`: nothing is held and no
    step is in flight, so that all of the pool is there for it.
    """

    ask: Ask
    moves: dict[BlockId, GroupId]
    waits_for: set[BlockId]
    need: int
    least: int
    alone: bool

    def answers(self, room: int) -> set[bool]:
        """Whether it may be granted, may be refused, with so many blocks free."""
        return {self.need <= room, self.least <= room}


def foresee(case: Case, event: ev.Allocate) -> Outlook:
    """Work out what is asked, once blocks that are no longer needed have gone back."""
    _return_old_states(case, event)
    ask = _ask(case, event)
    moves = _expected_moves(case, ask)
    unheld = {block for block in ask.hit_blocks if case.draft.count(block) == 0}
    need = num_fresh(ask.slots) + len(moves) + len(unheld)
    least = need - len(unheld & ask.optional_blocks)
    alone = not case.before.refs and not case.before.in_flight
    return Outlook(ask, moves, _written_in_this_step(case, ask), need, least, alone)


def _return_old_states(case: Case, event: ev.Allocate) -> None:
    """A running request's recurrent states before the one it goes on from leave its table."""
    request = case.before.requests[event.request]
    tables = list(request.tables)
    for g, group in enumerate(case.config.groups[: len(tables)]):
        gone = given_back(group, tables[g], request.computed)
        if gone:
            case.release((tuple(tables[g][i] for i in gone),), request.last_step)
            if case.config.deferral and request.last_step > case.before.processed:
                case.mark(m.OLD_STATES_WAIT)
            tables[g] = tuple(NULL_BLOCK if i in gone else b for i, b in enumerate(tables[g]))
    if tuple(tables) != request.tables:
        case.draft.update(event.request, tables=tuple(tables))


def _ask(case: Case, event: ev.Allocate) -> Ask:
    config, request, last = case.config, case.draft.request(event.request), case.before.last_lookup
    new, lookahead = event.num_new_tokens, event.num_lookahead_tokens
    if request.tables:
        span = Span(request.computed, 0, new, lookahead)
        slots = [
            next_recurrent(group, table, span)
            if group.recurrent
            else next_full(config, group, table, span)
            for group, table in zip(config.groups, request.tables, strict=True)
        ]
        return Ask(event, request, None, span, tuple(slots))
    if last is None or last.request != event.request:
        nothing: Tables = ((),) * len(config.groups)
        states = tuple(0 if group.recurrent else None for group in config.groups)
        last = LastLookup(event.request, nothing, 0, states)
    span = Span(last.num_tokens, event.num_external_tokens, new, lookahead)
    slots = [
        first_recurrent(group, hit, last.num_tokens > 0 and state == last.num_tokens, span)
        if group.recurrent
        else first_full(config, group, hit, span)
        for group, hit, state in zip(config.groups, last.blocks, last.states, strict=True)
    ]
    return Ask(event, request, last, span, tuple(slots))


def _expected_moves(case: Case, ask: Ask) -> dict[BlockId, GroupId]:
    """The owner's keyed tails that this chunk would overwrite: their entries have to move."""
    if ask.hit is not None:
        return {}
    tails = {
        moved_tail(group, table, ask.span): GroupId(g)
        for g, (group, table) in enumerate(zip(case.config.groups, ask.request.tables, strict=True))
    }
    return {b: g for b, g in tails.items() if b is not None and case.draft.entry(b) is not None}


# --- granted or not -----------------------------------------------------------------------------


def _decide(case: Case, outlook: Outlook, seen: ev.Grant) -> None:
    """Whether the answer is the one that order and room allow."""
    if outlook.waits_for:
        case.mark(m.DEFERRAL)
        case.require(c.STEP_DEFER, seen.granted, False, f"block {min(outlook.waits_for)}")
        return
    if outlook.alone:
        case.require(c.LIVE_ALONE, seen.granted, outlook.answers(case.config.num_blocks - 1))
    need, free = outlook.need, case.draft.num_free
    case.mark(m.REFUSAL if need > free else m.GRANT)
    where = f"needs {need} blocks, {free} are free"
    case.require(c.ALLOC_CAPACITY, seen.granted, outlook.answers(free), where)


def _written_in_this_step(case: Case, ask: Ask) -> set[BlockId]:
    """Hit blocks whose needed content this step still writes, before which they would be read."""
    assert case.before.open is not None
    found: set[BlockId] = set()
    if ask.hit is None or not any(ask.hit_blocks):
        return found
    written = lowest_writes(case.config, case.before.open.work)
    for g, slots in enumerate(ask.slots):
        for slot in slots:
            recurrent = case.config.groups[g].recurrent
            if isinstance(slot, Private):
                limit, block = ask.span.local, slot.source
            elif isinstance(slot, Kept) and recurrent:
                limit, block = ask.span.local, slot.block
            else:
                continue
            if written.get(block, limit) < limit:
                found.add(block)
    return found


def _refused(case: Case, event: ev.Allocate, seen: ev.Grant, kept_whole: Tables) -> None:
    """Nothing but the give-back may have happened; whether it did, the table tells."""
    given, shown = case.draft.request(event.request).tables, _bare(seen.table)
    case.require(c.ALLOC_REFUSAL, shown, (kept_whole, given), "table")
    said = (_bare(seen.new_blocks), seen.copies)
    case.require(c.ALLOC_REFUSAL, said, (((), ()),), "new blocks and copies")
    if shown != given:
        case.rollback()


def _bare(tables: Tables) -> Tables:
    """The tables of a request that holds nothing are written () in the judge."""
    return tables if any(tables) else ()
