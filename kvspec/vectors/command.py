"""`kvspec vectors`: write a folder of cases, or hold a target to those of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from kvspec.errors import BadInput, TargetUnusable
from kvspec.failure import Subject
from kvspec.files import AnyPath
from kvspec.recorded import probe_target
from kvspec.report import Verdict, json_text
from kvspec.spec.clauses import CLAUSES
from kvspec.targets import time_limits

from .folder import Folder, read_folder, write_folder
from .model import FORMAT
from .play import Played, play
from .sources import vectors

LONGEST = 400
"""Characters of an observed or allowed value that are printed."""


@dataclass(frozen=True, slots=True)
class Run:
    """A target and what came of each case of a folder."""

    target: str
    profile: str
    folder: str
    version: str
    played: tuple[Played, ...]

    def of(self, result: str) -> list[Played]:
        """The cases with this result."""
        return [one for one in self.played if one.result == result]

    @property
    def verdict(self) -> Verdict:
        """Unusable where nothing could be played."""
        if self.of("failed"):
            return "broken"
        return "conforms" if self.of("passed") else "unusable"


def write(place: AnyPath) -> str:
    """Write the folder; what was done, in one line. Raises `BadInput`."""
    cases = vectors()
    write_folder(place, cases)
    steps = sum(len(case.steps) for case in cases)
    return f"{place}: {len(cases)} vectors, {steps} steps ({FORMAT})"


def run(place: AnyPath, subject: Subject, log: Callable[[str], None] = lambda _: None) -> Run:
    """Play all cases of a folder. Raises `BadInput`, `TargetUnusable`."""
    folder = read_folder(place)
    profile = probe_target(subject).profile
    with time_limits():
        played = tuple(_each(folder, subject, log))
    return Run(subject.target, profile.value, str(place), folder.version, played)


def _each(folder: Folder, subject: Subject, log: Callable[[str], None]) -> Iterable[Played]:
    for case in folder.cases:
        log(case.id)
        if case.id in folder.invalid:
            yield Played(case.id, "skipped", why=f"invalidated: {folder.invalid[case.id]}")
            continue
        try:
            yield play(case, subject.target, subject.factory)
        except BadInput as error:
            raise BadInput(f"{folder.place}/{case.id}.json: {error}") from None
        except TargetUnusable as error:
            raise TargetUnusable(f"{error} (vector {case.id})") from error


# --- what came of it ------------------------------------------------------------------------------


def as_json(run: Run) -> str:
    """The run as JSON; fields may be added, never renamed."""
    return json_text(
        {
            "target": run.target,
            "profile": run.profile,
            "format": FORMAT,
            "vectors": {"folder": run.folder, "kvspec": run.version},
            "verdict": run.verdict,
            "cases": [_row(one) for one in run.played],
        }
    )


def _row(one: Played) -> dict[str, Any]:
    row = asdict(replace(one, trace=()))
    return {name: value for name, value in row.items() if value not in ("", ())}


def show(run: Run, console: Console) -> None:
    """Print why cases ended early or were passed over, and each case that failed."""
    reasons = Counter((one.result, one.why) for one in run.played if one.why)
    if reasons:
        table = Table(box=SIMPLE, show_edge=False, pad_edge=False)
        table.add_column("cases", justify="right")
        table.add_column("result")
        table.add_column("why", overflow="fold")
        for (result, why), number in reasons.items():
            table.add_row(str(number), "passed early" if result == "passed" else result, why)
        console.print(table, markup=False)
    for one in run.of("failed"):
        console.print(tell(one, run), markup=False, soft_wrap=True)


def tell(one: Played, run: Run) -> str:
    """A failed case: where, what was observed, what is allowed, by which clause."""
    lines = [
        f"{one.id} fails at step {one.steps}, {one.event}: {one.clause}",
        f"  rule      {CLAUSES[one.clause].statement}",
        f"  field     {one.field}",
        f"  observed  {_short(one.observed)}",
        f"  allowed   {_short(one.allowed)}",
        f"  file      {run.folder}/{one.id}.json",
    ]
    return "\n".join(line for line in lines if line != "  field     ")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"


def verdict_line(run: Run) -> str:
    """The run in one line."""
    failed, passed, skipped = (len(run.of(r)) for r in ("failed", "passed", "skipped"))
    early = sum(1 for one in run.of("passed") if one.why)
    steps = sum(one.steps for one in run.played)
    parted = f", {early} of them up to a choice of its own" if early else ""
    figures = f"{passed} of {len(run.played)} vectors passed{parted}, {skipped} passed over"
    if failed:
        clauses = ", ".join(sorted({one.clause for one in run.of("failed")}))
        return f"{run.target} is broken: {failed} vectors failed, {figures}: {clauses}"
    return f"{run.target} conforms ({run.profile}): {figures}, {steps} steps"
