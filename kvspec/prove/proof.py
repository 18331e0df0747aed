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
from kvspec.conditions import CONDITIONS, Condition
from kvspec.conditions.confirm import ConditionResult, confirm
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

    `paths` is where the covering paths of each world are written, if they are. `conditions` are
    confirmed before any world is walked.
    """

    subject: Subject
    worlds: Sequence[World]
    workers: int = 1
    limits: Limits = NO_LIMITS
    unreduced: bool = False
    paths: Path | None = None
    failures: Path = FOLDER
    conditions: Sequence[Condition] = ()


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
    conditions: tuple[ConditionResult, ...] = ()


def prove(asked: Asked, log: Callable[[str], None] = lambda _: None) -> Report:
    """Walk the worlds in order, up to the first violation. Raises `TargetUnusable`, `BadInput`.

    No world is walked when a condition is not confirmed: its rules would be those that judge.
    """
    began = time.monotonic()
    conditions = _confirm(asked.conditions, log)
    doubts = [result for result in conditions if result.verdict != "confirmed"]
    results: list[WorldResult] = []
    violations: list[rep.ViolationResult] = []
    for world in () if doubts else asked.worlds:
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
    stopped += [f"condition {d.id} is {d.verdict}: {d.reason}" for d in doubts]
    refuted = any(doubt.verdict == "refuted" for doubt in doubts)
    verdict: rep.Verdict = "unusable" if stopped else "conforms"
    if violations or refuted:
        verdict = "broken"
    profile = asked.subject.profile or Profile.ACCOUNTING
    return Report(
        target=asked.subject.target,
        profile=profile.value,
        verdict=verdict,
        worlds=tuple(results),
        violations=tuple(violations),
        seconds=round(time.monotonic() - began, 3),
        reason="" if violations else "; ".join(stopped),
        conditions=conditions,
    )


def chosen(deep: bool) -> tuple[Condition, ...]:
    """The conditions that are confirmed; those that take long only with `deep`."""
    return tuple(condition for condition in CONDITIONS.values() if deep or not condition.slow)


def _confirm(
    conditions: Sequence[Condition], log: Callable[[str], None]
) -> tuple[ConditionResult, ...]:
    results: list[ConditionResult] = []
    for condition in conditions:
        log(f"condition {condition.id}")
        results.append(confirm(condition))
    return tuple(results)


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
    if report.verdict == "broken":
        return f"the rules are broken: {report.reason}"
    states, transitions = (
        sum(getattr(world, name) for world in report.worlds) for name in ("states", "transitions")
    )
    worlds = f"{len(report.worlds)} world{'s' * (len(report.worlds) != 1)} exhausted"
    confirmed = f", {len(report.conditions)} conditions confirmed" if report.conditions else ""
    return (
        f"{report.target} conforms ({report.profile}): {worlds}, {states:,} states, "
        f"{transitions:,} transitions{confirmed}"
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
    if report.conditions:
        _show_conditions(report.conditions, console)
    console.print(table)
    for violation in report.violations:
        console.print(f"\n{violation.text}\n", markup=False, highlight=False, soft_wrap=True)


def _show_conditions(results: Sequence[ConditionResult], console: Console) -> None:
    """By noun how many were confirmed, and each that was not."""
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False)
    table.add_column("conditions", no_wrap=True)
    table.add_column("confirmed", justify="right")
    table.add_column("seconds", justify="right")
    for noun in dict.fromkeys(result.noun for result in results):
        ours = [result for result in results if result.noun == noun]
        held = sum(result.verdict == "confirmed" for result in ours)
        seconds = sum(result.seconds for result in ours)
        table.add_row(noun, f"{held} of {len(ours)}", f"{seconds:.1f}")
    console.print(table)
    for result in results:
        if result.reason:
            console.print(f"{result.id}: {result.reason}", markup=False, soft_wrap=True)
