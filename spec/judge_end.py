"""Judging how requests come and go, eviction and reset (design 4.7, 4.8)."""

from __future__ import annotations

from dataclasses import replace

from . import clauses as c
from . import events as ev
from . import marks as m
from .case import Case
from .content import POISON
from .digests import make_prefix
from .registration import retract
from .state import DetachedList, HandOff, Request, touched_blocks
from .types import NULL_BLOCK, Identity, RequestId, Step, Tables


def judge_submit(case: Case, event: ev.Submit, _: ev.Done) -> None:
    """A request arrives."""
    identity = Identity(event.salt, event.adapter, event.media)
    prefix = make_prefix(identity, event.tokens, case.config.hash_unit)
    case.draft.put("requests", event.request, Request(prefix, len(event.tokens)))


def judge_append(case: Case, event: ev.Append, _: ev.Done) -> None:
    """Sampled tokens become known."""
    request = case.before.requests[event.request]
    case.draft.update(event.request, prefix=request.prefix.extended(event.tokens))


def held_blocks(tables: Tables) -> Tables:
    """The real blocks of each table, in order."""
    return tuple(tuple(b for b in table if b != NULL_BLOCK) for table in tables)


def _free_request(case: Case, name: RequestId) -> None:
    """A request's blocks and pins go back, behind the fence of its last step if need be."""
    request = case.draft.request(name)
    tables = held_blocks(request.tables)
    case.kill_offers(name)
    case.forget_zeroing(block for table in tables for block in table)
    case.release(tables, request.last_step)
    _unpin(case, request.pins)


def _unpin(case: Case, pins: tuple[HandOff, ...]) -> None:
    for pin in pins:
        case.draft.drop(pin.block)
        case.owe(c.PIN_DROPPED, "count", pin.block)


def judge_end(case: Case, event: ev.Finish | ev.Abort, _: ev.Done) -> None:
    """A request ends."""
    _free_request(case, event.request)
    case.draft.remove("requests", event.request)


def judge_preempt(case: Case, event: ev.Preempt, _: ev.Done) -> None:
    """A request waits again, with nothing computed and all its tokens."""
    _free_request(case, event.request)
    case.draft.put("requests", event.request, case.draft.request(event.request).waiting())


def judge_withdraw(case: Case, event: ev.Withdraw, _: ev.Done) -> None:
    """A chunk that was granted will never run: its keys go before its blocks do."""
    name, current = event.request, case.before.open
    assert current is not None
    case.mark(m.WITHDRAWN)
    retract(case, name, case.before.requests[name].computed)
    _free_request(case, name)
    case.draft.put("requests", name, case.draft.request(name).waiting())
    forwards = tuple(f for f in current.work.forwards if f.request != name)
    granted = tuple(g for g in current.granted if g[0] != name)
    work = replace(current.work, forwards=forwards)
    withdrawn = current.withdrawn | {name}
    case.draft.set(open=replace(current, work=work, granted=granted, withdrawn=withdrawn))


def judge_detach(case: Case, event: ev.Detach, seen: ev.Detached) -> None:
    """Blocks and pins come off the request and stay held, pins first."""
    name, request = event.request, case.before.requests[event.request]
    tables = held_blocks(request.tables)
    blocks = tuple(block for table in tables for block in table)
    pinned = tuple(pin.block for pin in request.pins)
    case.require(c.REF_DETACHED, seen.blocks, (pinned, blocks))
    if pinned:
        case.mark(m.DETACHED_PINS)
    for block in {*pinned, *blocks}:
        case.owe(c.REF_DETACHED, "count", block)
    case.kill_offers(name)
    case.forget_zeroing(blocks)
    old: DetachedList = case.before.detached.get(name, DetachedList())
    joined = DetachedList(
        (*old.blocks, *blocks),
        (*old.pins, *request.pins),
        old.reading or request.reading,
        Step(max(old.fence, request.last_step)),
    )
    case.draft.put("detached", name, joined)
    case.draft.put("requests", name, request.waiting())


def judge_free_detached(case: Case, event: ev.FreeDetached, _: ev.Done) -> None:
    """What was detached is freed, tails first, and its pins are dropped."""
    found: DetachedList = case.before.detached[event.request]
    case.draft.remove("detached", event.request)
    case.release((found.blocks,), found.fence)
    _unpin(case, found.pins)


def judge_evict(case: Case, event: ev.Evict, _: ev.Done) -> None:
    """Keys go, holders stay."""
    for block in event.blocks:
        if block in case.before.refs and case.draft.entry(block) is not None:
            case.mark(m.EVICTED_IN_USE)
        case.draft.unpublish(block)
        case.owe(c.EVICT_ASKED, "key", block)
        case.owe(c.EVICT_ASKED, "count", block)


def judge_reset(case: Case, _: ev.Reset, seen: ev.ResetDone) -> None:
    """All keys go, or nothing does."""
    idle = not case.before.refs
    case.require(c.EVICT_RESET, seen.done, idle)
    for block in case.before.keys:
        case.owe(c.EVICT_CLEARED, "key", block)
    if seen.done:
        case.draft.set(keys={}, index={})
        _void(case)
        case.mark(m.RESET)
    else:
        case.mark(m.RESET_REFUSED)


def _void(case: Case) -> None:
    """The weights may be new ones: what blocks hold is nobody's prefix any more.

    Steps in flight still run as they were dispatched, on what they find.
    """
    touched = set().union(*(touched_blocks(case.config, work) for work in case.before.in_flight))
    for block in case.before.contents.keys() - touched:
        case.draft.put("contents", block, POISON)
