"""Judging the pass and its execution: lists drained, steps dispatched, run and processed."""

from __future__ import annotations

from dataclasses import replace

from . import clauses as c
from . import events as ev
from . import marks as m
from .admit import readable_pins
from .case import Case
from .content import (
    POISON,
    ZERO,
    Base,
    Content,
    RecurrentState,
    Rows,
    describe,
    first_foreign,
    holds_state,
    write_rows,
)
from .state import (
    DetachedList,
    Forward,
    HandOff,
    Pass,
    Request,
    Work,
    later_writes,
    lowest_writes,
    read_slots,
    written_slots,
)
from .tables import state_slot
from .types import NULL_BLOCK, BlockId, Config, GroupId, RequestId, Step, align_down, ceil_div


def judge_begin_step(case: Case, _: ev.BeginStep, __: ev.Done) -> None:
    """A pass opens."""
    case.draft.set(open=Pass(Work(Step(case.before.dispatched + 1))))


def judge_take_zeroing(case: Case, _: ev.TakeZeroing, seen: ev.Zeroing) -> None:
    """What is zeroed: all that must be, and nothing that must not."""
    held = {block for block in case.before.zero_due if block in case.before.refs}
    if held:
        case.require(c.ALLOC_ZEROED, seen.blocks, held)
    if seen.blocks:
        case.require(c.ALLOC_ZEROED_ONLY, seen.blocks, case.before.zero_allowed)
    current = case.before.open
    assert current is not None
    work = replace(current.work, zeroed=(*current.work.zeroed, *seen.blocks))
    nothing: frozenset[BlockId] = frozenset()
    case.draft.set(open=replace(current, work=work, drained=True))
    case.draft.set(zero_due=nothing, zero_allowed=nothing)


def judge_take_copies(case: Case, _: ev.TakeCopies, seen: ev.Copies) -> None:
    """The copies that the grants queued, and their endpoints, which stay held."""
    current = case.before.open
    assert current is not None
    queued = current.work.copies
    if queued or seen.copies:
        case.require(c.COPY_QUEUED, seen.copies, queued)
    ends = tuple(end for pair in queued for end in pair)
    if ends or seen.retained:
        case.require(c.COPY_RETAINED, seen.retained, ends)
        for end in ends:
            case.owe(c.COPY_RETAINED, "count", end)
        case.draft.set(retained=(*case.before.retained, (current.work.number, ends)))
    case.draft.set(open=replace(current, drained=True, copies_taken=True))


def judge_take_offloads(case: Case, _: ev.TakeOffloads, seen: ev.Offloads) -> None:
    """What the connector is handed; each block is pinned."""
    offers = case.before.offers
    if case.before.dead_offers:
        case.require(c.PIN_DIES, seen.offloads.keys() - offers.keys(), case.before.dead_offers)
    expected = {
        name: sorted((offer.group, offer.block, offer.boundary) for offer in found)
        for name, found in offers.items()
    }
    dead = case.before.dead_offers - offers.keys()
    shown = {
        name: sorted(found) for name, found in seen.offloads.items() if found and name not in dead
    }
    if expected or shown:
        case.require(c.PIN_HANDOFF, shown, expected)
    for name, handed in seen.offloads.items():
        if name in case.before.requests:
            _pin(case, name, handed)
    case.draft.set(dead_offers=frozenset())


def _pin(case: Case, name: RequestId, handed: tuple[tuple[GroupId, BlockId, int], ...]) -> None:
    """What was never offered is taken for what it is said to be, as of the newest step."""
    request, current = case.draft.request(name), case.before.open
    newest = current.work.number if current else case.before.dispatched
    offered = {(o.group, o.block, o.boundary): o for o in case.before.offers.get(name, ())}
    pins = [offered.get(one, HandOff(*one, request.prefix, newest)) for one in handed]
    for pin in pins:
        case.require(c.ALLOC_RANGE, pin.block, range(1, case.config.num_blocks))
        if case.draft.count(pin.block) == 0:
            case.mark(m.RESCUE)
        case.draft.hold(pin.block)
        case.owe(c.PIN_HELD, "count", pin.block)
    case.draft.update(name, pins=(*request.pins, *pins), reading=True)
    case.draft.remove("offers", name)


def judge_end_step(case: Case, _: ev.EndStep, seen: ev.Dispatched) -> None:
    """What was granted is dispatched; computed tokens advance before they are executed.

    A block that a withdrawn grant took and gave up is none of the step's business any more.
    """
    current = case.before.open
    assert current is not None
    number = current.work.number
    case.require(c.STEP_NUMBER, seen.step, number)
    for forward in current.work.forwards:
        known = min(forward.end, len(forward.prefix))
        case.draft.update(forward.request, computed=known, last_step=number)
    taken = tuple(block for block in current.work.taken if block in case.before.refs)
    work = replace(current.work, taken=taken)
    in_flight = (*case.before.in_flight, work)
    case.draft.set(open=None, dispatched=number, in_flight=in_flight)


# --- execution ----------------------------------------------------------------------------------


def judge_execute(case: Case, _: ev.Execute, __: ev.Done) -> None:
    """The oldest dispatched step runs: zero, copies, carry of states, forward."""
    number = Step(case.before.executed + 1)
    work = next(w for w in case.before.in_flight if w.number == number)
    case.draft.set(executed=number)
    for block in work.taken:
        case.draft.put("contents", block, POISON)
    for block in work.zeroed:
        case.draft.put("contents", block, ZERO)
    read = [(destination, case.draft.content(source)) for source, destination in work.copies]
    for destination, content in read:
        case.draft.put("contents", destination, content)
    for forward in work.forwards:
        _not_null(case, forward)
        _start_states(case, forward)
    for forward in work.forwards:
        _write(case, forward)
    for forward in work.forwards:
        _read(case, forward)
    _keep_promises(case, {*work.zeroed, *lowest_writes(case.config, work)})


def _not_null(case: Case, forward: Forward) -> None:
    slots = [(g, slot) for g, slot, _ in written_slots(case.config, forward)]
    slots += read_slots(case.config, forward)
    block, g, slot = min((forward.tables[g][slot], g, slot) for g, slot in slots)
    case.require(c.DATA_NULL, block, NULL_BLOCK, f"{forward.request}: group {g}, slot {slot}")


def _start_states(case: Case, forward: Forward) -> None:
    """Each recurrent state is read before any state of the step is written."""
    for g, group in enumerate(case.config.groups):
        if not group.recurrent or not forward.start:
            continue
        slot = state_slot(group, forward.start)
        content = case.draft.content(forward.tables[g][slot])
        right = holds_state(content, forward.prefix, forward.start)
        observed = "its own state" if right else describe(content)
        where = f"{forward.request} at {forward.start}: group {g}, slot {slot}"
        case.require(c.DATA_STATE, observed, "its own state", where)


def _write(case: Case, forward: Forward) -> None:
    known = min(forward.end, len(forward.prefix))
    for g, slot, position in written_slots(case.config, forward):
        group, block = case.config.groups[g], forward.tables[g][slot]
        content: Content = case.draft.content(block)
        if group.recurrent:
            case.draft.put("contents", block, RecurrentState(forward.prefix, forward.end))
            continue
        end = min((slot + 1) * group.block_size, forward.end)
        if position < known:
            content = write_rows(content, position, min(end, known), forward.prefix)
        if end > known:
            content = write_rows(content, max(position, known), end, None)
        case.draft.put("contents", block, content)
        if group.zeroed:
            assert isinstance(content, Rows)
            where = f"{forward.request}: group {g}, slot {slot}"
            case.require(c.DATA_ZEROED, content.base, Base.POISON, where)


def _read(case: Case, forward: Forward) -> None:
    """In full groups every known position up to the chunk's end is read, after all writes."""
    for g, group in enumerate(case.config.groups):
        if not group.recurrent:
            held = case.draft.contents
            contents = [held.get(block, POISON) for block in forward.tables[g]]
            observed, slot = _what_is_read(contents, forward, group.block_size)
            where = f"{forward.request}: group {g}, slot {slot}"
            case.require(c.DATA_READ, observed, "its own prefix", where)


def _what_is_read(contents: list[Content], forward: Forward, block_size: int) -> tuple[str, int]:
    """What a full group's blocks hold for a chunk; if not its own, then where first."""
    known = min(forward.end, len(forward.prefix))
    for slot in range(ceil_div(known, block_size)):
        start = slot * block_size
        end = min(start + block_size, known)
        foreign = first_foreign(contents[slot], forward.prefix, start, end)
        if foreign is not None:
            return f"at position {foreign} {describe(contents[slot])}", slot
    return "its own prefix", 0


def _keep_promises(case: Case, changed: set[BlockId]) -> None:
    """A key leads to its content, unless a step that has not run yet is going to write it."""
    if not case.accounting:
        return
    pending = later_writes(case.draft.freeze())
    for block in sorted(changed - pending):
        entry = case.draft.entry(block)
        if entry is None:
            continue
        group, content = case.config.groups[entry.group], case.draft.content(block)
        if group.recurrent:
            kept = holds_state(content, entry.prefix, entry.length)
        else:
            start = align_down(entry.length - 1, group.block_size)
            kept = first_foreign(content, entry.prefix, start, entry.length) is None
        observed = "what it promises" if kept else describe(content)
        where = f"block {block}, keyed at {entry.length}"
        case.require(c.DATA_KEY, observed, "what it promises", where)


def judge_process(case: Case, _: ev.Process, __: ev.Done) -> None:
    """A step's output arrives; blocks whose fence is reached are released."""
    number = Step(case.before.processed + 1)
    case.draft.set(
        processed=number,
        in_flight=tuple(w for w in case.before.in_flight if w.number > number),
        fenced=tuple(f for f in case.before.fenced if f[0] > number),
    )
    reached = [lists for fence, lists in case.before.fenced if fence <= number]
    for lists in reached:
        case.free(lists)
        for blocks in lists:
            for block in blocks:
                case.owe(c.FENCE_REACHED, "count", block)
    if reached:
        case.mark(m.FENCE_REACHED)


def judge_release_retained(case: Case, event: ev.ReleaseRetained, seen: ev.Released) -> None:
    """Endpoints of copies up to the fence: freed at once, or queued behind it, tails first."""
    retained = case.before.retained
    batches = [blocks for step, blocks in retained if step <= event.fence]
    blocks = tuple(block for batch in batches for block in batch)
    case.draft.set(retained=tuple(b for b in retained if b[0] > event.fence))
    waits = case.config.deferral and event.fence > case.before.processed
    if blocks or seen.blocks:
        case.require(c.FENCE_RETAINED, seen.blocks, () if waits else blocks[::-1])
    case.release((blocks,), event.fence)


# --- the connector ------------------------------------------------------------------------------


def judge_load_external(case: Case, event: ev.LoadExternal, __: ev.Done) -> None:
    """External tokens arrive, or the request falls back to its local hit."""
    request = case.before.requests[event.request]
    if event.ok:
        case.draft.update(event.request, loading=False, resumable=True)
        _load(case, request)
        return
    case.mark(m.LOAD_FAILS)
    fallen = case.draft.update(event.request, loading=False, computed=request.local, worker=())
    if fallen.stranded:
        case.mark(m.STRANDED)
    current = case.before.open
    if current is not None:
        forwards = tuple(f for f in current.work.forwards if f.request != event.request)
        case.draft.set(open=replace(current, work=replace(current.work, forwards=forwards)))
    _cut_lost_states(case, event.request, request)
    for g, _, block in external_slots(case.config, request):
        case.owe(c.REG_LOST, "key", block)
        group = case.config.groups[g]
        if group.zeroed and not group.recurrent:
            case.draft.set(
                zero_due=case.draft.zero_due | {block},
                zero_allowed=case.draft.zero_allowed | {block},
            )


def _cut_lost_states(case: Case, name: RequestId, request: Request) -> None:
    """Blocks of attention stay and are computed into; states that never came go back.

    A worker's table only grows, so a slot before them could not be filled later.
    """
    tables = list(request.tables)
    for g, group in enumerate(case.config.groups):
        if group.recurrent:
            kept = ceil_div(request.local, group.block_size)
            gone = tuple(block for block in tables[g][kept:] if block != NULL_BLOCK)
            case.forget_zeroing(gone)
            case.release((gone,), request.last_step)
            tables[g] = tables[g][:kept]
    case.draft.update(name, tables=tuple(tables))


def external_slots(config: Config, request: Request) -> list[tuple[GroupId, int, BlockId]]:
    """(group, slot, block) of the span that a connector fills."""
    found: list[tuple[GroupId, int, BlockId]] = []
    for g, group in enumerate(config.groups):
        first, last = request.local // group.block_size, (request.computed - 1) // group.block_size
        for slot in range(last if group.recurrent else first, last + 1):
            found.append((GroupId(g), slot, request.tables[g][slot]))
    return found


def _load(case: Case, request: Request) -> None:
    """The connector writes whole blocks: the span's content, zero behind it."""
    for g, slot, block in external_slots(case.config, request):
        size = case.config.groups[g].block_size
        if case.config.groups[g].recurrent:
            case.draft.put("contents", block, RecurrentState(request.prefix, request.computed))
            continue
        end = min((slot + 1) * size, request.computed)
        content = write_rows(ZERO, slot * size, end, request.prefix)
        case.draft.put("contents", block, content)


def judge_offload_read(case: Case, event: ev.OffloadRead, _: ev.Done) -> None:
    """The connector reads what it was handed for a request."""
    for pin in readable_pins(case.before, event.request):
        content = case.before.content(pin.block)
        right = holds_state(content, pin.prefix, pin.boundary)
        observed = "the state handed off" if right else describe(content)
        where = f"{event.request}: block {pin.block} at {pin.boundary}"
        case.require(c.DATA_OFFLOAD, observed, "the state handed off", where)


def judge_offload_done(case: Case, event: ev.OffloadDone, _: ev.Done) -> None:
    """The connector will not read again; the pins stay until the blocks are freed."""
    if event.request in case.before.requests:
        case.draft.update(event.request, reading=False)
    if event.request in case.before.detached:
        old: DetachedList = case.before.detached[event.request]
        case.draft.put("detached", event.request, replace(old, reading=False))
