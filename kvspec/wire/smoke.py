"""`kvspec smoke`: is the wiring right? Not: is the manager right.

One short conversation in which every event may turn up, judged by form only: each answer has the
form it must have, a second `configure` starts afresh, and the program ends when it is told to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kvspec.capabilities import ESSENTIAL
from kvspec.errors import ConfigDeclined, EventUnsupported, TargetUnusable
from kvspec.spec import events as ev
from kvspec.spec.types import BlockId, Config, Group, GroupKind, RequestId, Step, Token
from kvspec.targets import PROBE, Target, TargetFault, find_factory

from .engine import Pool, strictly

A, B = RequestId("a"), RequestId("b")
PROMPT = tuple(Token(n) for n in range(4))

FULL = Config(8, 2, (Group(GroupKind.FULL, 2),), 8)
HYBRID = Config(16, 2, (Group(GroupKind.FULL, 2), Group(GroupKind.MAMBA_ALIGN, 4)), 16)

REQUIRED = (
    ev.Submit(A, PROMPT),
    ev.BeginStep(),
    ev.Lookup(A),
    ev.Allocate(A, 4),
    ev.TakeZeroing(),
    ev.TakeCopies(),
    ev.TakeOffloads(),
    ev.EndStep(),
    ev.Execute(),
    ev.Process(),
    ev.ReleaseRetained(Step(1)),
    ev.Append(A, (Token(7),)),
    ev.Snapshot(),
    ev.Submit(B, (*PROMPT, Token(5), Token(6))),
    ev.BeginStep(),
    ev.Lookup(B),
    ev.LookupForConnector(B),
    ev.Truncate(B, 2),
    ev.Allocate(B, 4),
    ev.TakeZeroing(),
    ev.TakeCopies(),
    ev.TakeOffloads(),
    ev.EndStep(),
    ev.Execute(),
    ev.Process(),
    ev.ReleaseRetained(Step(2)),
    ev.Preempt(B),
    ev.Finish(A),
    ev.Abort(B),
    ev.Evict((BlockId(1),)),
    ev.Reset(),
    ev.Chunk(0, 8, 10, 10, 4, 2, 8),
    ev.Snapshot(),
)
"""A legal conversation: two requests, one after the other."""


@dataclass(frozen=True, slots=True)
class Smoke:
    """One check of the wiring: what was tried, and what came of it."""

    what: str
    result: str


def smoke(target: str) -> Iterator[Smoke]:
    """Try the wiring of a target, step by step; its answers are held to the schema.

    Raises `TargetUnusable` at the first step that fails.
    """
    name = strictly(target)
    factory = find_factory(name)
    first = Target(name, factory, PROBE)
    can = first.capabilities
    yield Smoke("start", _who(can))
    for what, config in (("full attention", FULL), ("hybrid", HYBRID)):
        yield Smoke(f"configure, {what}", _converse(name, factory, config))
    yield Smoke("configure again", _starts_afresh(name, factory))
    if isinstance(factory, Pool):
        factory.stop()
        yield Smoke("stop", "ended with status 0")


def _who(can: ev.Capabilities) -> str:
    shows = ", ".join(can.shows) or "nothing"
    lacks = f"; lacks {', '.join(can.lacks)}" if can.lacks else ""
    return f"{can.name} {can.version}".strip() + f"; shows {shows}{lacks}"


def _converse(name: str, factory: Callable[[], object], config: Config) -> str:
    try:
        target = Target(name, factory, config)
    except ConfigDeclined as declined:
        return f"declined: {str(declined).rpartition(': ')[2]}"
    spared: dict[str, None] = {}
    taken = 0
    for event in REQUIRED:
        kind = ev.EVENT_NAMES[type(event)]
        unshown = isinstance(event, ev.Snapshot) and not target.capabilities.shows
        if unshown or target.lacks(event):
            spared[kind] = None
            continue
        try:
            answer = target.ask(event)
        except EventUnsupported:
            spared[kind] = None
            continue
        except TargetFault as fault:
            raise TargetUnusable(
                f"target {name}: at {kind}: it answered with an error: {fault}"
            ) from fault
        if isinstance(answer, ev.Rejection) and kind in ESSENTIAL:
            raise TargetUnusable(f"target {name}: at {kind}: it rejected it: {answer.reason}")
        taken += 1
    told = f"{taken} events answered"
    return f"{told}; passed over: {', '.join(spared)}" if spared else told


def _starts_afresh(name: str, factory: Callable[[], object]) -> str:
    """A request of an earlier configuration is gone, and may be submitted again."""
    for _ in range(2):
        target = Target(name, factory, FULL)
        try:
            target.ask(ev.Submit(A, PROMPT))
            target.ask(ev.BeginStep())
            grant = target.ask(ev.Allocate(A, 4))
        except TargetFault as fault:
            raise TargetUnusable(
                f"target {name}: at configure again: {fault}; "
                "a configure has to forget every request of the one before"
            ) from fault
        if not isinstance(grant, ev.Grant) or not grant.granted:
            raise TargetUnusable(
                f"target {name}: at configure again: 4 tokens were not granted from 7 free blocks; "
                "a configure has to free every block of the one before"
            )
    return "starts afresh"
