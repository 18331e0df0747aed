"""`kvspec check`: hold a target to the whole spec and say which clauses held.

Three drivers share one ledger: every scenario, a short replay, the state machine. All of them run,
whatever the others find; a scenario, the replay and the machine each stop at their first broken
clause. A clause that several of them break is reported once, by the shortest trace, shrunk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kvspec.spec.clauses import CLAUSES, DATA_KERNEL, Profile
from kvspec.spec.marks import MARKS

from . import report as rep
from .capabilities import Tally, coverage
from .errors import (
    BadInput,
    ClauseBroken,
    ConfigDeclined,
    EventUnsupported,
    KvspecError,
    ScenarioFailed,
    TargetHung,
    TargetUnusable,
)
from .failure import FOLDER, Failure, Subject, find_subject, keep, run_again, shrunk
from .memory import StoreKind, kind_here
from .recorded import NEEDED, probe_target
from .replay import replay_config, replay_workload
from .scenarios import SCENARIOS, Scenario, Unsupported, run_scenario
from .scheduler import Limits
from .shards import search
from .targets import Target, time_limits
from .workload import generated_workload, read_workload

EXAMPLES = 1000
"""Runs of the state machine: with these a check takes some forty seconds on two cores."""

STEPS = 40
"""Rules in a run of the state machine."""

TRACE_VARIABLE, TRACE = "KVSPEC_TRACE", Path("../shared/traces/mooncake_conversation.jsonl")
"""Where the public trace may be: in the file that this environment variable names, or there."""

REQUESTS, BLOCKS, MAX_OUTPUT = 200, 256, 8
"""How much of a workload is replayed: a second's worth, with a pool that is always short."""

GRACE = 5.0
"""Seconds of shrinking that are granted beyond the time limit."""

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What to check, and how much."""

    target: str = "optimized"
    profile: Profile | None = None
    store: StoreKind = StoreKind.AUTO
    examples: int = EXAMPLES
    max_seconds: float | None = None
    seed: int = 0
    failures: Path = FOLDER
    gate: bool = False
    """Whether each capability of the kit has to be used, or not to be used for a known reason."""


def check(options: Options, log: Log = lambda _: None) -> rep.Report:
    """Run all drivers; whatever the target does comes back as a report."""
    began = time.monotonic()
    run = _Run(options, began, log)
    try:
        with time_limits():
            run.everything()
    except (TargetUnusable, TargetHung) as error:
        run.reason = str(error)
    return replace(run.report(), seconds=round(time.monotonic() - began, 3))


@dataclass
class _Run:
    """A check under way."""

    options: Options
    began: float
    log: Log
    ledger: Tally = field(default_factory=Tally)
    scenarios: list[rep.ScenarioResult] = field(default_factory=list)
    broken: dict[str, ClauseBroken] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    subject: Subject | None = None
    profile: Profile | None = None
    probe: Target | None = None
    replayed: str = ""
    events: int = 0
    reason: str = ""
    cut_short: bool = False

    @property
    def left(self) -> float | None:
        """Seconds left, None without a limit."""
        limit = self.options.max_seconds
        return None if limit is None else max(self.began + limit - time.monotonic(), 0.0)

    @property
    def late(self) -> bool:
        """Whether the time is used up."""
        return self.left == 0.0

    def everything(self) -> None:
        """Find the target, run the drivers, shrink what they broke."""
        self.subject = subject = find_subject(
            self.options.target, self.options.profile, self.options.store
        )
        self.probe = probe = probe_target(subject)
        self.profile = subject.profile or probe.profile
        try:
            for scenario in SCENARIOS.values():
                self.log(f"scenario {scenario.id}")
                self.scenarios.append(self.play(scenario, subject))
            with self.catching():
                self.replay(subject, probe)
            with self.catching():
                self.explore(subject)
        finally:
            self.shrink_all(subject)

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Remember the broken clause, with the shortest trace for each, and go on."""
        try:
            yield
        except ClauseBroken as broken:
            self.events += len(broken.events)
            clause = broken.violation.clause.id
            known = self.broken.setdefault(clause, broken)
            if len(broken.events) < len(known.events):
                self.broken[clause] = broken

    def play(self, scenario: Scenario, subject: Subject) -> rep.ScenarioResult:
        """Run one scenario."""
        result = rep.ScenarioResult(scenario.id, scenario.title, passed=False)
        if self.late:
            return replace(result, skipped="no time was left")
        name, factory, profile = subject.target, subject.factory, subject.profile
        try:
            play = run_scenario(
                scenario,
                name,
                factory,
                profile=profile,
                ledger=self.ledger,
                store=subject.store,
            )
        except Unsupported as unsupported:
            return replace(result, skipped=str(unsupported))
        except ClauseBroken as broken:
            with self.catching():
                raise
            return replace(result, problem=f"broke {broken.violation.clause.id}")
        except ScenarioFailed as failed:
            self.events += len(failed.events)
            return replace(result, problem=str(failed))
        except KvspecError:
            raise
        except Exception as error:  # an answer that no clause is about led the scenario astray
            return replace(result, problem=f"could not go on: {type(error).__name__}: {error}")
        self.events += 1 + len(play.session.events)
        return replace(result, passed=True)

    def replay(self, subject: Subject, probe: Target) -> None:
        """Replay the start of the public trace where it is at hand, else a generated workload."""
        if missing := [name for name in NEEDED if name in probe.capabilities.lacks]:
            self.replayed = f"skipped: the target does not take {', '.join(missing)}"
        elif self.late:
            self.replayed = "skipped: no time was left"
        if self.replayed:
            return
        path = Path(os.environ.get(TRACE_VARIABLE) or TRACE)
        if TRACE_VARIABLE in os.environ or path.is_file():
            arrivals = list(read_workload(path, REQUESTS))
            self.replayed = f"{len(arrivals)} requests of {path}"
        else:
            arrivals = generated_workload(self.options.seed)
            self.replayed = f"{len(arrivals)} generated requests"
        self.log(f"replay of {self.replayed}")
        try:
            totals = replay_workload(
                arrivals,
                subject.target,
                subject.factory,
                replay_config(blocks=BLOCKS),
                Limits(max_output=MAX_OUTPUT),
                profile=subject.profile,
                ledger=self.ledger,
            )
        except (ConfigDeclined, EventUnsupported) as declined:
            self.replayed = f"skipped: {declined}"
            return
        except ClauseBroken as broken:  # the books are shown rarely here: find what broke first
            raise run_again(subject, broken.events) or broken from broken
        self.events += totals.events

    def explore(self, subject: Subject) -> None:
        """Run the state machine."""
        if self.late:
            self.cut_short = True
            return
        self.log(f"state machine, {self.options.examples} examples")
        outcomes = search(
            subject,
            examples=self.options.examples,
            steps=STEPS,
            seed=self.options.seed,
            max_seconds=self.left,
        )
        for outcome in outcomes:
            self.ledger.add_tally(outcome.ledger)
            self.events += outcome.run.events
            self.cut_short |= outcome.run.cut_short
            with self.catching():
                if outcome.broken is not None:
                    raise outcome.broken

    def shrink_all(self, subject: Subject) -> None:
        """Shrink what was broken, and keep it as files."""
        left = self.left
        until = None if left is None else time.monotonic() + max(left, GRACE)
        for clause, broken in self.broken.items():
            self.log(f"shrinking {clause}")
            failure = shrunk(broken, subject, until=until)
            try:
                failure = keep(failure, subject, self.options.failures)
            except BadInput as error:
                self.reason = f"the failure was not kept: {error}"
            self.failures.append(failure)

    def report(self) -> rep.Report:
        """All that was found."""
        failed = any(not s.passed and not s.skipped for s in self.scenarios)
        verdict: rep.Verdict = "broken" if self.failures or failed else "conforms"
        if verdict == "conforms" and not self.reason and not self.ledger.exercised:
            self.reason = f"target {self.options.target}: nothing could be judged"
        capabilities = coverage(self.ledger, self.probe.capabilities if self.probe else None)
        open_ends = [c.id for c in capabilities if not c.used and not c.reason]
        if verdict == "conforms" and not self.reason and self.options.gate and open_ends:
            self.reason = (
                f"coverage gate: never used, and nothing says why: {', '.join(open_ends)}; "
                "raise --examples, or have the target say that it lacks them"
            )
        if verdict == "conforms" and self.reason:
            verdict = "unusable"
        return rep.Report(
            target=self.options.target,
            profile=self.profile.value if self.profile else "",
            seed=self.options.seed,
            verdict=verdict,
            scenarios=tuple(self.scenarios),
            clauses=tuple(self.clauses()),
            witnesses=tuple(self.witnesses()) if self.profile else (),
            replay=self.replayed,
            events=self.events,
            violations=tuple(self.violations()),
            reason=self.reason,
            cut_short=self.cut_short,
            runs=self.ledger.runs,
            capabilities=capabilities,
        )

    def violations(self) -> Iterator[rep.ViolationResult]:
        """What was broken."""
        for failure in self.failures:
            assert self.subject is not None
            yield rep.violation_result(failure, self.subject)

    def witnesses(self) -> Iterator[rep.Witness]:
        """How often each rare state was seen."""
        for mark in MARKS:
            yield rep.Witness(mark, self.ledger.marks[mark], self.ledger.seen[mark])

    def clauses(self) -> Iterator[rep.ClauseResult]:
        """How each clause fared."""
        for clause in CLAUSES.values() if self.profile else ():
            exercised, profile = self.ledger.exercised[clause.id], self.profile
            reason = "" if exercised or not profile else rep.why_never(clause, profile)
            if clause is DATA_KERNEL and kind_here(self.options.store) is StoreKind.PLAIN:
                reason = "the plain worker alone moved bytes: pip install torch, --store torch"
            yield rep.ClauseResult(clause.id, exercised, clause.id in self.broken, reason)
