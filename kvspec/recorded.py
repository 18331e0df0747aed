"""Replaying a recorded event trace, and what any replay came to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kvspec.spec import events as ev
from kvspec.spec.case import Ledger
from kvspec.spec.types import Config, InvalidInput

from .errors import BadInput, EventUnsupported
from .failure import Subject
from .files import AnyPath, read_lines
from .replay import Totals
from .session import Session
from .targets import PROBE, Target

NEEDED = ("lookup", "take_copies", "release_retained", "append", "preempt")
"""Events that the replay of a workload cannot do without, beside those that nothing can."""


def probe_target(subject: Subject) -> Target:
    """The target, configured once. Raises `TargetUnusable`."""
    return Target(subject.target, subject.factory, PROBE)


@dataclass(slots=True)
class _Counts:
    """What a recorded trace came to; the fields of `Totals`."""

    requests: int = 0
    prompt_tokens: int = 0
    hit_tokens: int = 0
    output_tokens: int = 0
    steps: int = 0
    copies: int = 0
    refusals: int = 0
    preemptions: int = 0
    events: int = 0

    def count(self, event: ev.Event, answer: ev.Observation, hit: int) -> None:
        """Add one event; `hit` is the length of the lookup directly before."""
        self.events += 1
        match event, answer:
            case ev.Submit(tokens=tokens), _:
                self.requests += 1
                self.prompt_tokens += len(tokens)
            case ev.Append(tokens=tokens), _:
                self.output_tokens += len(tokens)
            case ev.Preempt() | ev.Withdraw(), _:
                self.preemptions += 1
            case _, ev.Copies(copies=copies):
                self.copies += len(copies)
            case _, ev.Dispatched():
                self.steps += 1
            case _, ev.Grant(granted=granted):
                self.refusals += not granted
                self.hit_tokens += hit if granted else 0


def is_recorded(path: AnyPath) -> bool:
    """Whether a file holds events rather than the requests of a workload. Raises `BadInput`."""
    for where, data in read_lines(path):
        if isinstance(data, dict) and "event" in data:
            return True
        if isinstance(data, dict) and "hash_ids" in data:
            return False
        raise BadInput(
            f"{where}: expected an event (a field event) or a request of a workload (hash_ids)"
        )
    raise BadInput(f"{path} line 1: expected an event or a request, got an empty file")


def replay_recorded(
    path: AnyPath,
    events: Sequence[ev.Event],
    subject: Subject,
    *,
    judged: bool = True,
    snapshot_every: int = 1,
    ledger: Ledger | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Totals:
    """Send a trace to a target. Raises `BadInput` for an event that may not be sent."""
    config = events[0]
    assert isinstance(config, Config)
    session = Session(
        subject.target,
        subject.factory,
        config,
        profile=subject.profile if judged else None,
        ledger=ledger,
        judged=judged,
        snapshots=snapshot_every == 1,
        moves_bytes=judged,
        store=subject.store,
    )
    counts, hit, missed = _Counts(), 0, ""
    for number, event in enumerate(events[1:], start=2):
        if session.lacks(event):
            continue
        try:
            answer = session.send(event)
        except EventUnsupported as unsupported:
            if isinstance(event, ev.Submit):
                raise
            missed = f" (the target was spared an event before: {unsupported})"
            continue
        except InvalidInput as error:
            raise BadInput(f"{path} line {number}: {error}{missed}") from None
        counts.count(event, answer, hit)
        hit = _hit_after(event, answer, hit)
        shows = judged and bool(session.target.capabilities.shows)
        if shows and snapshot_every > 1 and number % snapshot_every == 0:
            session.send(ev.Snapshot())
        progress(number)
    evictions = session.ledger.marks["eviction"] if judged else None
    return Totals(**asdict(counts), infeasible=0, evictions=evictions, judged=judged)


def _hit_after(event: ev.Event, answer: Any, before: int) -> int:
    """The length of the lookup that directly precedes the next event."""
    match event, answer:
        case _, ev.Hit(num_tokens=length) | ev.ConnectorHit(num_tokens=length):
            return length
        case ev.Truncate(num_tokens=length), ev.View():
            return length
        case ev.Snapshot() | ev.Truncate(), _:
            return before
    return 0
