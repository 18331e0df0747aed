"""`kvspec explain`: why a hit was as long as it was, and who filled the blocks that it reused.

A trace is sent to a target and judged on the way. Each lookup of the request is then told: how far
the hit reached, how far each group did, which key was missing next and what became of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kvspec.spec import events as ev
from kvspec.spec.digests import Prefix
from kvspec.spec.judge_lookup import keyed_for
from kvspec.spec.lookup import full_reach, full_run, hit_limit, partial_tail, recurrent_reach
from kvspec.spec.marks import DEFERRAL
from kvspec.spec.state import State
from kvspec.spec.types import NULL_BLOCK, Config, GroupId, InvalidInput, align_down

from .errors import BadInput
from .failure import Subject
from .files import AnyPath
from .history import History, Life
from .session import Session


@dataclass(frozen=True, slots=True)
class Reused:
    """A block of a hit, and the request that wrote it."""

    group: int
    slot: int
    block: int
    filled_by: str
    keyed_at: int
    event: int


@dataclass(frozen=True, slots=True)
class GroupReach:
    """How far a group reaches on its own, in tokens, and why not further."""

    group: int
    kind: str
    reach: int
    why: str


@dataclass(frozen=True, slots=True)
class Explained:
    """One lookup. `outcome` says what the grant behind it came to, if one came."""

    event: int
    lookup: str
    num_tokens: int
    known_tokens: int
    limit: int
    why: str
    groups: tuple[GroupReach, ...]
    reused: tuple[Reused, ...]
    outcome: str = ""


def explain(
    path: AnyPath, events: Sequence[ev.Event], request: str, subject: Subject
) -> list[Explained]:
    """Every lookup of a request in a trace. Raises `BadInput`, `ClauseBroken`, `TargetUnusable`."""
    config, *rest = events
    assert isinstance(config, Config)
    if not any(isinstance(e, ev.Submit) and e.request == request for e in rest):
        raise BadInput(f"{path}: no request {request!r} is submitted in it")
    session = Session(
        subject.target,
        subject.factory,
        config,
        profile=subject.profile,
        store=subject.store,
    )
    history, found = History(), list[Explained]()
    for at, event in enumerate(rest, start=1):
        if session.lacks(event):
            continue
        before, deferred = session.state, session.ledger.marks[DEFERRAL.id]
        try:
            answer = session.send(event)
        except InvalidInput as error:
            raise BadInput(f"{path} line {at + 1}: {error}") from None
        if getattr(event, "request", None) == request:
            if isinstance(answer, ev.Hit | ev.ConnectorHit):
                found.append(_explained(at, event, answer, before, history))
            asked = before.last_lookup
            used = asked is not None and asked.request == request
            if isinstance(answer, ev.Grant) and found and used:
                waits = session.ledger.marks[DEFERRAL.id] > deferred
                found[-1] = _with_outcome(found[-1], answer, waits)
        history.note(at, before, event, session.state)
    return found


def _with_outcome(one: Explained, grant: ev.Grant, waits: bool) -> Explained:
    outcome = "granted" if grant.granted else "refused: not enough free blocks"
    if waits:
        outcome = "deferred: a step still writes what the hit needs; granted in a later step"
    return replace(one, outcome=outcome)


def _explained(
    at: int, event: Any, hit: ev.Hit | ev.ConnectorHit, state: State, history: History
) -> Explained:
    config, prefix = state.config, state.requests[event.request].prefix
    limit = hit_limit(config, len(prefix))
    groups = tuple(_group_reach(state, history, GroupId(g), prefix, limit) for g in config.ids())
    return Explained(
        event=at,
        lookup=ev.EVENT_NAMES[type(event)],
        num_tokens=hit.num_tokens,
        known_tokens=len(prefix),
        limit=limit,
        why=_why(state, history, prefix, hit.num_tokens, groups),
        groups=groups,
        reused=tuple(_reused(hit, history)),
    )


def _reused(hit: ev.Hit | ev.ConnectorHit, history: History) -> Iterator[Reused]:
    for g, table in enumerate(hit.blocks):
        for slot, block in enumerate(table):
            life = history.now.get(block)
            if block != NULL_BLOCK and life is not None:
                filled, length = str(life.filled or ""), life.entry.length
                yield Reused(g, slot, block, filled, length, life.given.at)


def _why(
    state: State, history: History, prefix: Prefix, hit: int, groups: tuple[GroupReach, ...]
) -> str:
    """Why the joint hit ended where it did."""
    config, known = state.config, len(prefix)
    limit, step = hit_limit(config, known), config.alignment
    if not config.caching:
        return "caching is off"
    if limit < step:
        unit = "hash unit" if config.fine else "scheduler block"
        return f"{known} tokens leave {limit} to reuse, below the {unit} of {step}"
    if hit == align_down(limit, step):
        return f"it is as long as may be: the last of {known} tokens is computed, to get logits"
    short = min(groups, key=lambda group: group.reach)
    ends = f"group {short.group} ({short.kind}) ends at {short.reach}: {short.why}"
    if short.reach <= hit:
        return ends
    keyed = keyed_for(state, prefix)
    without = next(
        (
            GroupId(g)
            for g, group in enumerate(config.groups)
            if group.recurrent and not keyed(GroupId(g), short.reach)
        ),
        None,
    )
    if without is None:
        return ends
    why = _missing(history, without, prefix, short.reach, limit)
    return f"{ends}; and group {without} has no state there: {why}"


# --- one group ------------------------------------------------------------------------------------


def _group_reach(
    state: State, history: History, group_id: GroupId, prefix: Prefix, limit: int
) -> GroupReach:
    config, keyed = state.config, keyed_for(state, prefix)
    group = config.groups[group_id]
    if group.recurrent:
        reach = recurrent_reach(config, group_id, keyed, limit)
        missing = reach + config.alignment
        why = _missing(history, group_id, prefix, missing, limit)
        return GroupReach(group_id, group.kind.value, reach, why)
    reach = full_reach(config, group_id, keyed, limit)
    run = full_run(config, group_id, keyed, limit)
    tail = partial_tail(config, group_id, keyed, run, limit) if config.fine else run
    if group.eagle and tail > reach:
        why = f"eagle gives up the last unit of what was found, {tail} tokens"
    elif tail > reach:
        why = f"{tail} tokens were found, rounded down to the alignment of {config.alignment}"
    else:
        missing = run + (config.hash_unit if config.fine else group.block_size)
        missing = max(missing, tail + config.hash_unit) if config.fine else missing
        why = _missing(history, group_id, prefix, missing, limit, run + group.block_size)
    return GroupReach(group_id, group.kind.value, reach, why)


def _missing(
    history: History, group_id: GroupId, prefix: Prefix, length: int, limit: int, end: int = 0
) -> str:
    """What is known of the keys that would have carried the group further, the first at `length`.

    A full group may also go on by the key of the block's `end`.
    """
    if length > limit:
        return "nothing further may be reused"
    for further in dict.fromkeys((end if 0 < end <= len(prefix) else length, length)):
        lives = history.lives.get((group_id, prefix.digest_at(further)), [])
        gone = [life for life in lives if life.taken is not None]
        if gone:
            return _lost(gone[-1], further)
    return _never_keyed(history, prefix, length)


def _lost(life: Life, length: int) -> str:
    assert life.taken is not None
    return (
        f"the key at {length} tokens, given to block {life.block} by {life.filled!r} at event "
        f"{life.given.at}, was lost at event {life.taken.at}: {life.why}"
    )


def _never_keyed(history: History, prefix: Prefix, length: int) -> str:
    """Nobody keyed this prefix so far; perhaps someone did under another identity."""
    wanted = prefix.tokens[:length]
    for submit in reversed(history.identities.values()):
        if submit.tokens[:length] != wanted:
            continue
        differs = [
            name
            for name in ("salt", "adapter", "media")
            if getattr(submit, name) != getattr(prefix.identity, name)
        ]
        if differs:
            return (
                f"never keyed at {length} tokens; {submit.request!r} has the same tokens but "
                f"another {' and '.join(differs)}"
            )
    return f"never keyed at {length} tokens"


# --- in words -------------------------------------------------------------------------------------


def tell(found: Sequence[Explained], request: str) -> Iterator[str]:
    """All of it, line by line."""
    for one in found:
        yield (
            f"event {one.event}, {one.lookup} of {request}: hit {one.num_tokens} of "
            f"{one.known_tokens} tokens{f', {one.outcome}' if one.outcome else ''}"
        )
        yield f"  why not longer: {one.why}"
        for group in one.groups:
            yield f"  group {group.group} ({group.kind}) reaches {group.reach}: {group.why}"
        for block in one.reused:
            yield (
                f"  group {block.group}, slot {block.slot}: block {block.block}, filled by "
                f"{block.filled_by!r}, keyed at {block.keyed_at} tokens by event {block.event}"
            )


def verdict(found: Sequence[Explained], request: str) -> str:
    """What came of it, in one line."""
    if not found:
        return f"{request} was never looked up"
    last = found[-1]
    return f"{request} hit {last.num_tokens} of {last.known_tokens} tokens: {last.why}"


def as_data(found: Sequence[Explained], request: str) -> dict[str, Any]:
    """The JSON form."""
    return {"request": request, "lookups": [asdict(one) for one in found]}
