"""The kill matrix: what became of each mutant, as JSON, as Markdown and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import msgspec
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from kvspec.report import VERSION

from .catalogue import MUTANTS
from .drivers import Kill
from .hunt import Outcome


@dataclass(frozen=True, slots=True)
class Summary:
    """A hunt in figures: how many were killed, and how soon."""

    mutants: int
    killed: int
    median_events: float
    slowest: str
    slowest_seconds: float

    @property
    def survivors(self) -> int:
        """How many nobody saw."""
        return self.mutants - self.killed


def summarise(outcomes: Sequence[Outcome]) -> Summary:
    """The figures of a hunt."""
    kills = [(outcome, outcome.kill) for outcome in outcomes if outcome.kill]
    slowest = max(kills, key=lambda pair: pair[0].to_kill, default=None)
    return Summary(
        mutants=len(outcomes),
        killed=len(kills),
        median_events=median(kill.events for _, kill in kills) if kills else 0,
        slowest=slowest[0].mutant if slowest else "",
        slowest_seconds=round(slowest[0].to_kill, 1) if slowest else 0.0,
    )


def as_json(outcomes: Sequence[Outcome], seed: int) -> str:
    """The matrix as JSON; fields may be added, never renamed."""
    summary = summarise(outcomes)
    data = {
        "kvspec": VERSION,
        "seed": seed,
        "mutants": summary.mutants,
        "killed": summary.killed,
        "median_events": summary.median_events,
        "slowest": {"id": summary.slowest, "seconds": summary.slowest_seconds},
        "matrix": [_row(outcome) for outcome in outcomes],
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=1).decode() + "\n"


def _row(outcome: Outcome) -> dict[str, Any]:
    mutant = MUTANTS[outcome.mutant]
    return {
        "id": mutant.id,
        "title": mutant.title,
        "clause": mutant.clause,
        "atlas": mutant.atlas,
        "profile": profile_of(outcome),
        "killed_by": outcome.killer,
        "events": outcome.events,
        "shrunk": outcome.shrunk,
        "seconds": round(outcome.seconds, 1),
        "problem": outcome.problem,
        "drivers": {name: kill and _told(kill) for name, kill in outcome.kills.items()},
    }


def _told(kill: Kill) -> dict[str, Any]:
    return {
        "clause": kill.clause,
        "scenario": kill.scenario,
        "events": kill.events,
        "seconds": round(kill.seconds, 2),
    }


def profile_of(outcome: Outcome) -> str:
    """The profile that the mutant was held to."""
    mutant = MUTANTS[outcome.mutant]
    return "exact" if mutant.exact else "soundness" if mutant.hidden else "accounting"


def as_markdown(outcomes: Sequence[Outcome], command: str, where: str) -> str:
    """The matrix as a page of the docs. `where` says what machine the seconds are of."""
    summary = summarise(outcomes)
    drivers = list(dict.fromkeys(name for outcome in outcomes for name in outcome.kills))
    lines = [
        "# Kill matrix",
        "",
        f"Written by `{command}` ({where}). {summary.killed} of {summary.mutants} mutants are "
        f"killed; median of the events until the first driver sees one: "
        f"{summary.median_events:g}; slowest: {summary.slowest}, {summary.slowest_seconds:g} s.",
        "",
        "A cell says after how many events a driver saw the mutant, and which clause it broke "
        "(or which scenario showed another value); `-` where it saw nothing, blank where it was "
        "not run. *Shrunk* is the length of the shortest trace found.",
        "",
        "| mutant | filed under | atlas | profile | " + " | ".join(drivers) + " | shrunk |",
        "|" + "---|" * (len(drivers) + 5),
    ]
    for outcome in outcomes:
        mutant = MUTANTS[outcome.mutant]
        cells = [_cell(outcome, name) for name in drivers]
        shrunk = "" if outcome.shrunk is None else str(outcome.shrunk)
        lines.append(
            f"| **{mutant.id}**: {mutant.title} | {mutant.clause} | {' '.join(mutant.atlas)} | "
            f"{profile_of(outcome)} | " + " | ".join(cells) + f" | {shrunk} |"
        )
    return "\n".join(lines) + "\n"


def _cell(outcome: Outcome, driver: str) -> str:
    if driver not in outcome.kills:
        return ""
    kill = outcome.kills[driver]
    if kill is None:
        return "-"
    seen = ", ".join(filter(None, [kill.clause, kill.scenario]))
    return f"{kill.events}: {seen}"


def show(outcomes: Iterable[Outcome], console: Console) -> None:
    """Print the matrix."""
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    for column in ("mutant", "breaks", "seen by", "clause", "events", "shrunk", "seconds"):
        right = column in ("events", "shrunk", "seconds")
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    for outcome in outcomes:
        kill = outcome.kill
        seen = f"{outcome.killer} {kill.scenario}" if kill else "nobody"
        table.add_row(
            outcome.mutant,
            MUTANTS[outcome.mutant].clause,
            seen,
            (kill.clause or "another value") if kill else outcome.problem,
            str(kill.events) if kill else "",
            "" if outcome.shrunk is None else str(outcome.shrunk),
            f"{outcome.seconds:.1f}",
        )
    console.print(table)


def verdict_line(outcomes: Sequence[Outcome]) -> str:
    """The hunt in one line."""
    summary = summarise(outcomes)
    left = [outcome.mutant for outcome in outcomes if not outcome.kill]
    figures = (
        f"{summary.killed} of {summary.mutants} mutants killed, median "
        f"{summary.median_events:g} events, slowest {summary.slowest} "
        f"{summary.slowest_seconds:g} s"
    )
    return figures if not left else f"{figures}; survivors: {', '.join(left)}"
