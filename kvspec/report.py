"""What a check found: as data, as JSON of a stable form, as JUnit XML, and as tables.

Fields of the JSON may be added, never renamed (design section 8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import groupby
from typing import Any, Literal
from xml.etree import ElementTree as ET

import msgspec
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from kvspec.spec.clauses import CLAUSES, Clause, Profile
from kvspec.spec.marks import MARKS

from .capabilities import Coverage
from .failure import Failure, Subject, replay_command, say, tell
from .replay import Totals

VERSION = version("kvspec")

SELDOM = 0.001
"""The part of the runs in which a rare state should be seen at the least."""

Verdict = Literal["conforms", "broken", "unusable"]
EXIT: dict[Verdict, int] = {"conforms": 0, "broken": 1, "unusable": 2}
"""The exit status of each verdict."""


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """One scenario: passed, skipped for a reason, or neither and then with what was wrong."""

    id: str
    title: str
    passed: bool
    skipped: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ClauseResult:
    """One clause: how often it could have failed, and whether it did; why it never could."""

    id: str
    exercised: int
    broken: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Witness:
    """A rare state: how often it was seen, and in how many runs of the machine."""

    id: str
    seen: int
    runs: int = 0

    def is_rare(self, runs: int) -> bool:
        """Whether so many runs of the machine saw it too seldom to find what hides there."""
        return self.runs < runs * SELDOM


@dataclass(frozen=True, slots=True)
class ViolationResult:
    """A broken clause; `trace` and `test` are files, `replay` a command, `text` the whole story."""

    clause: str
    statement: str
    step: int
    observed: str
    allowed: str
    trace: str
    replay: str
    test: str = ""
    text: str = ""


def violation_result(failure: Failure, subject: Subject) -> ViolationResult:
    """A failure as a report has it."""
    violation = failure.violation
    return ViolationResult(
        clause=violation.clause.id,
        statement=violation.clause.statement,
        step=failure.step,
        observed=say(violation.observed),
        allowed=say(violation.allowed),
        trace=str(failure.trace or ""),
        replay=replay_command(failure, subject),
        test=str(failure.test or ""),
        text=tell(failure, subject),
    )


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """A replay; `evictions` are None where not judged, `verdict` says "not judged" then."""

    target: str
    profile: str
    trace: str
    verdict: Verdict | Literal["not judged"]
    totals: Totals | None = None
    seconds: float = 0.0
    violations: tuple[ViolationResult, ...] = ()

    @property
    def rate(self) -> float:
        """Events per second."""
        return self.totals.events / self.seconds if self.totals and self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """A whole check. `replay` says what was, `reason` why it is unusable or ended early.

    `runs` are those of the machine.
    `cut_short`: the time limit left out runs of the machine, at least.
    """

    target: str
    profile: str
    seed: int
    verdict: Verdict
    scenarios: tuple[ScenarioResult, ...] = ()
    clauses: tuple[ClauseResult, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    events: int = 0
    seconds: float = 0.0
    violations: tuple[ViolationResult, ...] = ()
    replay: str = ""
    reason: str = ""
    cut_short: bool = False
    runs: int = 0
    capabilities: tuple[Coverage, ...] = ()

    @property
    def status(self) -> int:
        """The exit status."""
        return EXIT[self.verdict]

    @property
    def failed_scenarios(self) -> list[ScenarioResult]:
        """Scenarios that did not pass and were not skipped."""
        return [s for s in self.scenarios if not s.passed and not s.skipped]


def verdict_line(report: Report) -> str:
    """The verdict in one line: the last thing that a check prints."""
    if report.verdict == "unusable":
        return f"unusable: {report.reason}"
    who = f"{report.target} "
    if report.verdict == "broken":
        scenarios = [f"scenario {s.id}" for s in report.failed_scenarios]
        clauses = [v.clause for v in report.violations]
        return f"{who}is broken: {', '.join(clauses or scenarios)}"
    covered = [c for c in report.clauses if not _uncovered(report, CLAUSES[c.id])]
    exercised = sum(c.exercised > 0 for c in covered)
    passed, of = sum(s.passed for s in report.scenarios), len(report.scenarios)
    return (
        f"{who}conforms ({report.profile}): {exercised} of {len(covered)} clauses exercised, "
        f"{passed if passed == of else f'{passed} of {of}'} scenarios, "
        f"{report.events:,} events, seed {report.seed}"
        f"{', cut short by the time limit' if report.cut_short else ''}"
    )


def replay_line(report: ReplayReport) -> str:
    """The verdict on a replay, in one line."""
    if report.violations:
        return f"{report.target} is broken: {', '.join(v.clause for v in report.violations)}"
    assert report.totals is not None
    did = "conforms" if report.totals.judged else "not judged"
    return (
        f"{report.target} {did} ({report.profile}): {report.totals.requests:,} requests, "
        f"hit rate {report.totals.hit_rate:.1%}, {report.totals.events:,} events"
    )


def _uncovered(report: Report, clause: Clause) -> bool:
    return bool(report.profile) and not Profile(report.profile).covers(clause.profile)


def why_never(clause: Clause, profile: Profile) -> str:
    """Why a clause was never exercised, as far as that is known."""
    if not profile.covers(clause.profile):
        return f"needs the {clause.profile.value} profile, this is {profile.value}"
    return "no run reached a state in which it could have failed"


# --- files ----------------------------------------------------------------------------------------


def as_json(report: Report) -> str:
    """The report in the JSON form of design section 8, what was added to it last in each object."""
    return json_text(asdict(report))


def replay_json(report: ReplayReport) -> str:
    """The report of a replay as JSON."""
    data = asdict(report)
    totals = data.pop("totals") or {}
    violations = data.pop("violations")
    if report.totals is not None:
        totals["hit_rate"] = report.totals.hit_rate
    return json_text({**data, "events_per_second": report.rate, **totals, "violations": violations})


def json_text(data: dict[str, Any]) -> str:
    """A report as JSON text, beginning with our version."""
    encoded = msgspec.json.encode({"kvspec": VERSION, **data})
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def as_junit(report: Report) -> str:
    """The report as JUnit XML: a test case for each scenario and each clause."""
    suite = ET.Element("testsuite", name=_clean(f"kvspec check {report.target}"))
    told = {v.clause: v for v in report.violations}
    for scenario in report.scenarios:
        case = _case(suite, "kvspec.scenarios", f"{scenario.id} {scenario.title}")
        if scenario.skipped:
            ET.SubElement(case, "skipped", message=_clean(scenario.skipped))
        elif not scenario.passed:
            ET.SubElement(case, "failure", message=_clean(scenario.problem))
    for clause in report.clauses:
        case = _case(suite, "kvspec.clauses", clause.id)
        if clause.broken:
            found = told.get(clause.id)
            failure = ET.SubElement(case, "failure", message=CLAUSES[clause.id].statement)
            failure.text = _clean(found.text) if found else None
        elif not clause.exercised:
            ET.SubElement(case, "skipped", message=f"never exercised: {clause.reason}")
    if report.verdict == "unusable":
        case = _case(suite, "kvspec", "target")
        ET.SubElement(case, "error", message=_clean(report.reason))
    for name, tag in (
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
        ("skipped", "skipped"),
    ):
        suite.set(name, str(len(list(suite.iter(tag)))))
    suite.set("time", f"{report.seconds:.3f}")
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, classname: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=classname, name=name)


def _clean(text: str) -> str:
    """The text without what XML 1.0 cannot hold."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)


# --- tables ---------------------------------------------------------------------------------------


def show(report: Report, console: Console) -> None:
    """Print the tables and the failures; the verdict line is left to the caller."""
    if report.clauses:
        console.print(_clause_table(report))
    for line in (*_scenario_lines(report), *_witness_lines(report)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for violation in report.violations:
        console.print(f"\n{violation.text}\n", markup=False, highlight=False, soft_wrap=True)
    if report.reason and report.verdict != "unusable":
        console.print(f"ended early: {report.reason}", markup=False, soft_wrap=True)


def _clause_table(report: Report) -> Table:
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False)
    table.add_column("clause", no_wrap=True)
    table.add_column("exercised", justify="right")
    table.add_column("result")
    for _, family in groupby(report.clauses, key=lambda c: CLAUSES[c.id].family):
        for clause in family:
            table.add_row(clause.id, f"{clause.exercised:,}", _result(clause))
        table.add_section()
    return table


def _result(clause: ClauseResult) -> str:
    if clause.broken:
        return f"[bold red]BROKEN[/] {CLAUSES[clause.id].statement}"
    if not clause.exercised:
        return f"[yellow]not exercised[/] {clause.reason}"
    return "[green]held[/]"


def _scenario_lines(report: Report) -> Iterator[str]:
    if not report.scenarios:
        return
    passed = sum(s.passed for s in report.scenarios)
    yield f"\nscenarios: {passed} of {len(report.scenarios)} passed"
    for scenario in report.scenarios:
        if scenario.skipped:
            yield f"  {scenario.id} skipped: {scenario.skipped}"
        elif not scenario.passed:
            yield f"  {scenario.id} FAILED ({scenario.title}): {scenario.problem}"
    if report.replay:
        yield f"replay: {report.replay}"
    yield from _coverage_lines(report)


def _coverage_lines(report: Report) -> Iterator[str]:
    """What of the kit was not made use of, by the reason why."""
    spared = [c for c in report.capabilities if not c.used]
    if not report.capabilities:
        return
    of = len(report.capabilities)
    yield f"capabilities: {of - len(spared)} of {of} used"
    reasons = dict.fromkeys(c.reason for c in spared)
    for reason in reasons:
        names = ", ".join(c.id for c in spared if c.reason == reason)
        yield f"  {reason or 'no run drew it'}: {names}"


def _witness_lines(report: Report) -> Iterator[str]:
    """How many rare states were seen, and which of them seldom or never."""
    if not report.clauses:
        return
    seen = sum(witness.seen > 0 for witness in report.witnesses)
    yield f"rare states: {seen} of {len(report.witnesses)} seen"
    for witness in report.witnesses:
        if witness.is_rare(report.runs) or not witness.seen:
            statement = MARKS[witness.id].statement
            often = f"in {witness.runs} of {report.runs:,} runs of the machine"
            yield f"  warning: {witness.id!r} was seen {often}: {statement}"


def show_replay(report: ReplayReport, console: Console) -> None:
    """Print what a replay came to; the verdict line is left to the caller."""
    totals = report.totals
    if totals is not None:
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column()
        table.add_column(justify="right")
        for name in ("requests", "prompt_tokens", "hit_tokens", "output_tokens", "steps"):
            table.add_row(name.replace("_", " "), f"{getattr(totals, name):,}")
        table.add_row("hit rate", f"{totals.hit_rate:.2%}")
        for name in ("evictions", "copies", "refusals", "preemptions", "infeasible", "events"):
            value = getattr(totals, name)
            table.add_row(name, "not judged" if value is None else f"{value:,}")
        judged = "judged events per second" if totals.judged else "events per second"
        table.add_row(judged, f"{report.rate:,.0f}")
        console.print(table)
    for violation in report.violations:
        console.print(f"\n{violation.text}\n", markup=False, highlight=False, soft_wrap=True)
