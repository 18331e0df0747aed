"""`kvspec replay`: find out what kind of trace it is, replay it, tell what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from kvspec.spec.types import Config, InvalidInput

from . import report as rep
from .codec import read_trace
from .errors import BadInput, ClauseBroken, TargetUnusable
from .failure import FOLDER, Failure, Subject, keep, run_again, shrunk
from .memory import StoreKind
from .recorded import NEEDED, is_recorded, probe_target, replay_recorded
from .replay import (
    BLOCKS,
    GROUPS,
    HASH_UNIT,
    SNAPSHOT_EVERY,
    Totals,
    replay_config,
    replay_workload,
)
from .scheduler import Limits
from .targets import Target, time_limits
from .workload import read_workload

Progress = Callable[[int, int], None]
"""Told how much is done, of how much."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for; None where the default of the kind of trace holds."""

    trace: Path
    subject: Subject
    blocks: int | None = None
    limit: int | None = None
    judged: bool = True
    groups: str | None = None
    hash_unit: int | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    snapshot_every: int | None = None
    failures: Path = FOLDER


def replay(asked: Asked, progress: Progress = lambda done, total: None) -> rep.ReplayReport:
    """Replay a trace of either kind. Raises `BadInput`, `TargetUnusable`, `TargetHung`."""
    subject = asked.subject
    recorded = is_recorded(asked.trace)
    probe = probe_target(subject)
    profile = subject.profile or probe.profile
    report = rep.ReplayReport(
        target=subject.target,
        profile=profile.value,
        trace=str(asked.trace),
        verdict="conforms" if asked.judged else "not judged",
    )
    began = time.monotonic()
    try:
        run = _recorded if recorded else _workload
        with time_limits():
            totals = run(asked, probe, progress)
    except ClauseBroken as broken:
        seconds = time.monotonic() - began
        told = rep.violation_result(_failure(asked, broken), subject)
        return replace(report, verdict="broken", seconds=seconds, violations=(told,))
    if not recorded and totals.infeasible == totals.requests:
        raise BadInput(
            f"{asked.trace}: none of {totals.requests} requests fits the pool, nothing was served: "
            "raise --blocks"
        )
    return replace(report, totals=totals, seconds=time.monotonic() - began)


def _failure(asked: Asked, broken: ClauseBroken) -> Failure:
    """The failure, shrunk and kept; an unjudged replay has no trace to shrink."""
    if not asked.judged:
        return Failure(broken.violation, broken.events)
    broken = run_again(asked.subject, broken.events) or broken
    return keep(shrunk(broken, asked.subject), asked.subject, asked.failures)


def _recorded(asked: Asked, _probe: Target, progress: Progress) -> Totals:
    for option, value in (
        ("--groups", asked.groups),
        ("--hash-unit", asked.hash_unit),
        *((f"--{name.replace('_', '-')}", value) for name, value in asked.limits.items()),
    ):
        if value is not None:
            raise BadInput(f"{option} is for a workload; {asked.trace} holds recorded events")
    events = read_trace(asked.trace)[: asked.limit]
    if asked.blocks is not None:
        assert isinstance(events[0], Config)
        try:
            events[0] = replace(events[0], num_blocks=asked.blocks)
        except InvalidInput as error:
            raise BadInput(f"--blocks: {error}") from None
    return replay_recorded(
        asked.trace,
        events,
        asked.subject,
        judged=asked.judged,
        snapshot_every=asked.snapshot_every or 1,
        progress=lambda done: progress(done, len(events)),
    )


def _workload(asked: Asked, probe: Target, progress: Progress) -> Totals:
    if asked.subject.store is not StoreKind.AUTO:
        raise BadInput(
            f"--store is for recorded events; {asked.trace} is a workload, which moves no bytes"
        )
    if missing := [name for name in NEEDED if name in probe.capabilities.lacks]:
        raise TargetUnusable(
            f"target {asked.subject.target}: it lacks {', '.join(missing)}, which the replay of a "
            "workload needs"
        )
    arrivals = list(read_workload(asked.trace, asked.limit))
    return replay_workload(
        arrivals,
        asked.subject.target,
        asked.subject.factory,
        replay_config(asked.groups or GROUPS, asked.hash_unit or HASH_UNIT, asked.blocks or BLOCKS),
        Limits(**asked.limits),
        judged=asked.judged,
        profile=asked.subject.profile,
        snapshot_every=asked.snapshot_every or SNAPSHOT_EVERY,
        progress=lambda done: progress(done, len(arrivals)),
    )
