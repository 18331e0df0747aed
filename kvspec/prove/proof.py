"""`kvspec prove`: walk tiny worlds to the last state and tell what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from kvspec import report as rep
from kvspec.errors import BadInput, TargetUnusable
from kvspec.failure import FOLDER, Failure, Subject, keep, run_again
from kvspec.spec import events as ev
from kvspec.spec.case import Violation
from kvspec.spec.clauses import Profile

from .paths import write_paths
from .search import NO_LIMITS, Explored, Limits, explore
from .worlds import World


@dataclass(frozen=True, slots=True)
class Asked:
    """What to prove. With `unreduced` each world is walked a second time without renaming.

    `paths` is where the covering paths of each world are written, if they are.
    """

    subject: Subject
    worlds: Sequence[World]
    workers: int = 1
    limits: Limits = NO_LIMITS
    unreduced: bool = False
    paths: Path | None = None
    failures: Path = FOLDER


@dataclass(frozen=True, slots=True)
class WorldResult:
    """One world: `stopped` says why it was not exhausted; `unreduced` counts states unrenamed.

    `covered` is how many (event, clause, branch) were seen, `paths` how many were written.
    """

    id: str
    title: str
    exhausted: bool
    states: int
    transitions: int
    depth: int
    covered: int
    seconds: float
    stopped: str = ""
    unreduced: int | None = None
    paths: int | None = None

    @property
    def rate(self) -> float:
        """States per second."""
        return self.states / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a proof; `reason` says why nothing is claimed."""

    target: str
    profile: str
    verdict: rep.Verdict
    worlds: tuple[WorldResult, ...] = ()
    violations: tuple[rep.ViolationResult, ...] = ()
    seconds: float = 0.0
    reason: str = ""


def prove(asked: Asked, log: Callable[[str], None] = lambda _: None) -> Report:
    """Walk the worlds in order, up to the first violation. Raises `TargetUnusable`, `BadInput`."""
    began = time.monotonic()
    results: list[WorldResult] = []
    violations: list[rep.ViolationResult] = []
    for world in asked.worlds:
        explored = _explore(asked, world, log)
        result = _result(explored)
        if explored.broken is not None:
            violations.append(_tell(asked, world, *explored.broken))
        elif asked.unreduced and explored.exhausted:
            plain = _explore(asked, world, log, plain=True)
            result = replace(result, unreduced=plain.states if plain.exhausted else None)
        if asked.paths is not None and explored.exhausted:
            result = replace(result, paths=len(write_paths(explored, asked.paths)))
        results.append(result)
        if violations:
            break
    stopped = [f"world {r.id} was not exhausted: {r.stopped}" for r in results if r.stopped]
    verdict: rep.Verdict = "broken" if violations else "unusable" if stopped else "conforms"
    profile = asked.subject.profile or Profile.ACCOUNTING
    return Report(
        target=asked.subject.target,
        profile=profile.value,
        verdict=verdict,
        worlds=tuple(results),
        violations=tuple(violations),
        seconds=round(time.monotonic() - began, 3),
        reason="" if violations else "; ".join(stopped),
    )


def _explore(
    asked: Asked, world: World, log: Callable[[str], None], plain: bool = False
) -> Explored:
    subject = asked.subject
    if subject.profile is Profile.SOUNDNESS:
        raise BadInput("--profile soundness: prove compares all books; use accounting or exact")
    return explore(world, subject, plain=plain, workers=asked.workers, limits=asked.limits, log=log)


def _result(explored: Explored) -> WorldResult:
    return WorldResult(
        id=explored.world.id,
        title=explored.world.title,
        exhausted=explored.exhausted,
        states=explored.states,
        transitions=explored.transitions,
        depth=explored.depth,
        covered=len(explored.covers),
        seconds=round(explored.seconds, 3),
        stopped=explored.stopped,
    )


def _tell(
    asked: Asked, world: World, violation: Violation, events: tuple[ev.Event, ...]
) -> rep.ViolationResult:
    """The violation as a fresh run of its path breaks it, kept like any other failure."""
    trace = (world.config, *events)
    again = run_again(asked.subject, trace)
    if again is None and violation.clause.family == "HASH":
        raise TargetUnusable(
            f"target {asked.subject.target}: its snapshots call a prefix differently in different "
            "sequences of events; prove needs names that the prefix alone decides"
        )
    if again is None:
        failure = Failure(violation, trace, repeats=False)
    else:
        failure = Failure(again.violation, again.events, again.observations)
    return rep.violation_result(keep(failure, asked.subject, asked.failures), asked.subject)


# --- in words -------------------------------------------------------------------------------------


def verdict_line(report: Report) -> str:
    """The verdict in one line."""
    if report.verdict == "unusable":
        return f"unusable: {report.reason}"
    if report.violations:
        return f"{report.target} is broken: {', '.join(v.clause for v in report.violations)}"
    states, transitions = (
        sum(getattr(world, name) for world in report.worlds) for name in ("states", "transitions")
    )
    worlds = f"{len(report.worlds)} world{'s' * (len(report.worlds) != 1)} exhausted"
    return (
        f"{report.target} conforms ({report.profile}): {worlds}, {states:,} states, "
        f"{transitions:,} transitions"
    )


def as_json(report: Report) -> str:
    """The report as JSON."""
    return rep.json_text(asdict(report))


def show(report: Report, console: Console) -> None:
    """Print the table and the violation; the verdict line is left to the caller."""
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False)
    columns = ("states", "transitions", "depth", "covered", "states/s", "symmetry")
    table.add_column("world", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right")
    table.add_column("result")
    for world in report.worlds:
        told = "[green]exhausted[/]" if world.exhausted else "[bold red]BROKEN[/]"
        if world.stopped:
            told = f"[yellow]not exhausted[/]: {world.stopped}"
        saved = f"{world.unreduced / world.states:.1f}x" if world.unreduced else "-"
        counts = (world.states, world.transitions, world.depth, world.covered)
        table.add_row(world.id, *(f"{n:,}" for n in counts), f"{world.rate:,.0f}", saved, told)
    console.print(table)
    for violation in report.violations:
        console.print(f"\n{violation.text}\n", markup=False, highlight=False, soft_wrap=True)
