"""Which events the driver may send when (design 3.1).

These are rules for whoever drives a cache, not for the cache: an event that breaks one is refused
before it reaches the target, and it says nothing about the target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import events as ev
from .state import HandOff, LastLookup, Pass, Request, State, written_slots
from .types import MAX_ID_LENGTH, MAX_TOKEN, Config, Connector, InvalidInput, RequestId, Token


def admit(state: State, event: ev.Event) -> None:
    """Raise `InvalidInput`, with the reason, when this event may not be sent now."""
    if isinstance(event, Config):
        raise InvalidInput("configure: the cache is configured already, start a new trace")
    name = ev.EVENT_NAMES[type(event)]
    reason = _RULES[type(event)](state, event)
    if reason is not None:
        raise InvalidInput(f"{name}: {reason}")


def why_not(state: State, event: ev.Event) -> str | None:
    """The reason why this event may not be sent now, or None."""
    try:
        admit(state, event)
    except InvalidInput as error:
        return str(error)
    return None


def _unknown(state: State, request: RequestId) -> str | None:
    if request not in state.requests:
        return f"request {request!r} was not submitted or has ended"
    return None


def _submit(state: State, event: ev.Submit) -> str | None:
    if not 1 <= len(event.request) <= MAX_ID_LENGTH:
        return f"request must be 1 to {MAX_ID_LENGTH} characters long, got {len(event.request)}"
    if event.request in state.requests:
        return f"request {event.request!r} is submitted already and has not ended"
    if not event.tokens:
        return "tokens must not be empty"
    if len(event.tokens) > state.config.max_model_len:
        return (
            f"{len(event.tokens)} tokens are more than max_model_len {state.config.max_model_len}"
        )
    return _bad_media(event) or _bad_tokens(event.tokens)


def _bad_media(event: ev.Submit) -> str | None:
    free_from = 0
    for item in event.media:
        if item.start < 0 or item.length < 1 or item.start + item.length > len(event.tokens):
            return f"media {item.content!r} does not lie within the {len(event.tokens)} tokens"
        if item.start < free_from:
            return f"media {item.content!r} starts before the item in front of it ends"
        free_from = item.start + item.length
    return None


def _bad_tokens(tokens: tuple[Token, ...]) -> str | None:
    if min(tokens) < 0 or max(tokens) > MAX_TOKEN:
        bad = next(t for t in tokens if not 0 <= t <= MAX_TOKEN)
        return f"token {bad} is not in 0..{MAX_TOKEN}"
    return None


def _begin_step(state: State, _: ev.BeginStep) -> str | None:
    if state.open:
        return f"step {state.open.work.number} has not ended"
    if len(state.in_flight) >= state.config.max_in_flight:
        return f"{len(state.in_flight)} steps are in flight, max_in_flight allows no more: process"
    return None


def _lookup(state: State, event: ev.Lookup | ev.LookupForConnector) -> str | None:
    if reason := _unknown(state, event.request):
        return reason
    if state.requests[event.request].tables:
        return f"request {event.request!r} holds blocks, it looks nothing up"
    return None


def _truncate(state: State, event: ev.Truncate) -> str | None:
    last = state.last_lookup
    if last is None or last.request != event.request:
        return f"no lookup of request {event.request!r} directly before"
    if event.num_tokens < 0:
        return f"num_tokens must be at least 0, got {event.num_tokens}"
    return None


def _allocate(state: State, event: ev.Allocate) -> str | None:
    if reason := _unknown(state, event.request):
        return reason
    for field in ("num_new_tokens", "num_external_tokens", "num_lookahead_tokens"):
        if getattr(event, field) < 0:
            return f"{field} must be at least 0, got {getattr(event, field)}"
    request = state.requests[event.request]
    return (
        _not_granting(state, event.request)
        or _not_ready(event.request, request)
        or _bad_external(state, event, request)
        or _too_many(state, event, request)
    )


def _not_granting(state: State, name: RequestId) -> str | None:
    if state.open is None:
        return "no step has begun"
    if state.open.drained:
        return "the step's lists are drained, nothing more is granted before the next step"
    if name in state.open.withdrawn:
        return f"request {name!r} was withdrawn in this step"
    if any(name == other for other, _ in state.open.granted):
        return f"request {name!r} was granted in this step already"
    return None


def _not_ready(name: RequestId, request: Request) -> str | None:
    if request.loading:
        return f"request {name!r} waits for its external tokens"
    if request.stranded:
        return f"request {name!r} has nowhere to resume from after its load: preempt it"
    return None


def _own_lookup(state: State, name: RequestId) -> LastLookup | None:
    """The hit that a first grant of this request uses."""
    last = state.last_lookup
    return last if last is not None and last.request == name else None


def _bad_external(state: State, event: ev.Allocate, request: Request) -> str | None:
    hit = None if request.tables else _own_lookup(state, event.request)
    if event.num_external_tokens == 0:
        if hit is not None and not hit.resumable:
            return "a diverged hit needs external tokens that bring the recurrent state"
        return None
    if request.tables:
        return "external tokens come only with a request's first grant"
    if state.config.connector is Connector.NONE:
        return "there is no connector to bring external tokens"
    if state.config.max_in_flight > 1 and not state.config.deferral:
        return "external tokens with several steps in flight need deferral"
    if hit is not None and hit.num_tokens % state.config.scheduler_block:
        return f"external tokens need a hit cut to block ends, not {hit.num_tokens} tokens"
    return None


def _too_many(state: State, event: ev.Allocate, request: Request) -> str | None:
    start = request.computed
    if not request.tables:
        hit = _own_lookup(state, event.request)
        start = (hit.num_tokens if hit else 0) + event.num_external_tokens
    known, end = len(request.prefix), start + event.num_new_tokens
    if event.num_external_tokens and start >= known:
        return f"external tokens up to {start} leave none of {known} tokens to compute"
    if end > state.config.max_model_len:
        return f"{end} tokens are more than max_model_len {state.config.max_model_len}"
    drafts = all(not group.recurrent for group in state.config.groups)
    if end > known and (not drafts or start >= known):
        return f"tokens up to {end} of request {event.request!r}, of which {known} are known"
    return None


def _drain(state: State, _: Any) -> str | None:
    if state.open is None:
        return "no step has begun"
    for forward in state.open.work.forwards:
        if state.requests[forward.request].loading:
            return f"request {forward.request!r} computes on tokens that were not loaded yet"
    return None


def _drained(state: State) -> str | None:
    """What the step's lists name must not change owner before the step is dispatched."""
    if state.open is not None and state.open.drained:
        return "the step's lists are drained: end the step first"
    return None


def _take_copies(state: State, _: ev.TakeCopies) -> str | None:
    if state.open and state.open.copies_taken:
        return "the copies of this step were taken already"
    return _drain(state, _)


def _end_step(state: State, _: ev.EndStep) -> str | None:
    if state.open is None:
        return "no step has begun"
    if state.open.work.copies and not state.open.copies_taken:
        return "copies are queued: take_copies first"
    if state.zero_due:
        return "blocks wait to be zeroed: take_zeroing first"
    return _drain(state, _)


def _execute(state: State, _: ev.Execute) -> str | None:
    return None if state.executed < state.dispatched else "no dispatched step is left to execute"


def _process(state: State, _: ev.Process) -> str | None:
    return None if state.processed < state.executed else "no executed step is left to process"


def _release_retained(state: State, event: ev.ReleaseRetained) -> str | None:
    newest = state.open.work.number if state.open else state.dispatched
    if not 0 <= event.fence <= newest:
        return f"fence must be a step from 0 to {newest}, got {event.fence}"
    return None


def _append(state: State, event: ev.Append) -> str | None:
    if reason := _unknown(state, event.request):
        return reason
    request = state.requests[event.request]
    if not event.tokens:
        return "tokens must not be empty"
    if request.computed < len(request.prefix):
        return f"request {event.request!r} has tokens left to compute, none was sampled"
    if request.last_step > state.processed:
        return f"step {request.last_step} of request {event.request!r} was not processed yet"
    if len(request.prefix) + len(event.tokens) > state.config.max_model_len:
        return f"more than max_model_len {state.config.max_model_len} tokens"
    return _bad_tokens(event.tokens)


def _granted_now(state: State, name: RequestId) -> bool:
    return state.open is not None and any(name == other for other, _ in state.open.granted)


def _end(state: State, event: Any) -> str | None:
    if reason := _unknown(state, event.request):
        return reason
    if state.requests[event.request].loading:
        return f"external tokens of request {event.request!r} may still arrive: load_external first"
    if _granted_now(state, event.request):
        return f"request {event.request!r} was granted in this step: withdraw it, or end the step"
    return _drained(state) if state.requests[event.request].tables else None


def _holding(state: State, event: ev.Preempt | ev.Detach) -> str | None:
    if reason := _end(state, event):
        return reason
    if not state.requests[event.request].tables:
        return f"request {event.request!r} holds no blocks"
    return None


def _withdraw(state: State, event: ev.Withdraw) -> str | None:
    if reason := _unknown(state, event.request):
        return reason
    if not _granted_now(state, event.request) or state.open is None:
        return f"request {event.request!r} was not granted in this step"
    if state.requests[event.request].loading:
        return f"external tokens of request {event.request!r} may still arrive: load_external first"
    if reason := _drained(state):
        return reason
    reader = _later_hit(state, state.open, event.request)
    return f"request {reader!r} hit what the chunk would have written" if reader else None


def _later_hit(state: State, current: Pass, name: RequestId) -> RequestId | None:
    """Who was granted later in the pass on a hit that this request's chunk would have written."""
    writes = {
        forward.tables[g][slot]
        for forward in current.work.forwards
        if forward.request == name
        for g, slot, _ in written_slots(state.config, forward)
    }
    order = [other for other, _ in current.granted]
    for other, hits in current.granted[order.index(name) + 1 :]:
        if writes.intersection(hits):
            return other
    return None


def _free_detached(state: State, event: ev.FreeDetached) -> str | None:
    if event.request not in state.detached:
        return f"nothing was detached from request {event.request!r}"
    return _drained(state)


def _offload(state: State, event: ev.OffloadRead | ev.OffloadDone) -> str | None:
    pins = readable_pins(state, event.request)
    if not pins:
        return f"nothing is handed to the connector for request {event.request!r}"
    newest = max(pin.step for pin in pins)
    if isinstance(event, ev.OffloadRead) and newest > state.executed:
        return f"step {newest}, which writes what was handed off, has not run: execute first"
    return None


def readable_pins(state: State, name: RequestId) -> tuple[HandOff, ...]:
    """What the connector was handed for a request and may still read."""
    pins: tuple[HandOff, ...] = ()
    if name in state.requests and state.requests[name].reading:
        pins += state.requests[name].pins
    if name in state.detached and state.detached[name].reading:
        pins += state.detached[name].pins
    return pins


def _load_external(state: State, event: ev.LoadExternal) -> str | None:
    if reason := _unknown(state, event.request):
        return reason
    if not state.requests[event.request].loading:
        return f"request {event.request!r} waits for no external tokens"
    return None if event.ok else _drained(state)


def _evict(state: State, event: ev.Evict) -> str | None:
    for block in event.blocks:
        if not 0 < block < state.config.num_blocks:
            return f"block {block} is not in 1..{state.config.num_blocks - 1}"
    return None


def _chunk(state: State, event: ev.Chunk) -> str | None:
    for field in ("start", "wanted", "cap", "boundary"):
        if getattr(event, field) < 0:
            return f"{field} must be at least 0, got {getattr(event, field)}"
    for field in ("num_prompt_tokens", "num_tokens", "block_size", "hash_unit", "budget"):
        if getattr(event, field) < 1:
            return f"{field} must be at least 1, got {getattr(event, field)}"
    if event.start + event.wanted > event.num_tokens:
        return f"start {event.start} and wanted {event.wanted} exceed {event.num_tokens} tokens"
    return None


def _always(_state: State, _event: Any) -> str | None:
    return None


_RULES: dict[type[ev.Event], Callable[[State, Any], str | None]] = {
    ev.Submit: _submit,
    ev.BeginStep: _begin_step,
    ev.Lookup: _lookup,
    ev.LookupForConnector: _lookup,
    ev.Truncate: _truncate,
    ev.Allocate: _allocate,
    ev.TakeZeroing: _drain,
    ev.TakeCopies: _take_copies,
    ev.TakeOffloads: _always,
    ev.EndStep: _end_step,
    ev.Execute: _execute,
    ev.Process: _process,
    ev.ReleaseRetained: _release_retained,
    ev.Append: _append,
    ev.Withdraw: _withdraw,
    ev.Preempt: _holding,
    ev.Finish: _end,
    ev.Abort: _end,
    ev.Detach: _holding,
    ev.FreeDetached: _free_detached,
    ev.OffloadRead: _offload,
    ev.OffloadDone: _offload,
    ev.LoadExternal: _load_external,
    ev.Evict: _evict,
    ev.Reset: _always,
    ev.Chunk: _chunk,
    ev.Snapshot: _always,
}
