"""A broken clause, told to a person: what broke, the shortest way there, and how to repeat it."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from kvspec.spec import events as ev
from kvspec.spec.case import Violation
from kvspec.spec.clauses import Profile
from kvspec.spec.types import Config

from .codec import trace_text
from .errors import BadInput, ClauseBroken, InvalidInput, TargetUnusable
from .memory import StoreKind, require_store
from .shrink import Events, breaks, run_events, shrink
from .targets import BUILT_IN, Factory, find_factory

FOLDER = Path(".kvspec/failures")
"""Where failures are kept unless asked otherwise."""

LONGEST = 400
"""Characters of an observed or allowed value that are shown; a whole snapshot would hide it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is judged: a target, the profile it is held to (None for what it shows), and a store."""

    target: str
    factory: Factory
    profile: Profile | None = None
    store: StoreKind = StoreKind.AUTO


def default_profile(target: str) -> Profile | None:
    """Our own targets make the reference's choices; any other is held to what it shows."""
    return Profile.EXACT if target in BUILT_IN else None


def find_subject(
    target: str, profile: Profile | None = None, store: StoreKind = StoreKind.AUTO
) -> Subject:
    """The target of this name. Raises `TargetUnusable`, and `BadInput` for the store."""
    require_store(store)
    return Subject(target, find_factory(target), profile or default_profile(target), store)


@dataclass(frozen=True, slots=True)
class Failure:
    """A broken clause with the trace that breaks it; `step` is the index of its last event.

    `repeats` is false when a second run did not break it. `trace` and `test` are the files kept.
    """

    violation: Violation
    events: Events
    observations: tuple[ev.Observation, ...] = ()
    repeats: bool = True
    trace: Path | None = None
    test: Path | None = None

    @property
    def step(self) -> int:
        """The index in the trace of the event at which the clause broke; `configure` is 0."""
        return len(self.events) - 1


def shrunk(broken: ClauseBroken, subject: Subject, *, until: float | None = None) -> Failure:
    """The shortest way found to break the same clause, within the budget and the time limit."""
    clause = broken.violation.clause.id
    still_fails = breaks(
        clause, subject.target, subject.factory, subject.profile, store=subject.store
    )

    def in_time(events: Events) -> Events | None:
        late = until is not None and time.monotonic() > until
        return None if late else still_fails(events)

    events = shrink(broken.events, in_time)
    for candidate in dict.fromkeys((events, broken.events)):
        again = run_again(subject, candidate)
        if again is not None and again.violation.clause.id == clause:
            return Failure(again.violation, again.events, again.observations)
    return Failure(broken.violation, broken.events, broken.observations, repeats=False)


def run_again(subject: Subject, events: Events) -> ClauseBroken | None:
    """What a trace breaks with a snapshot after each event: at times nearer to the cause."""
    try:
        run_events(subject.target, subject.factory, subject.profile, events, store=subject.store)
    except ClauseBroken as broken:
        return broken
    except (InvalidInput, TargetUnusable):
        return None
    return None


# --- in words -------------------------------------------------------------------------------------


def say(value: object) -> str:
    """A value, on one line: digests as hex, sets in order, dataclasses without their defaults."""
    if isinstance(value, bytes):
        return value.hex()[:16]
    if is_dataclass(value) and not isinstance(value, type):
        given = ", ".join(f"{name}={say(v)}" for name, v in _given(value))
        return f"{type(value).__name__}({given})"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(say, value))) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{say(k)}: {say(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(say, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(say, value)) + ("," if len(value) == 1 else "") + ")"
    return " ".join(repr(value).split()) if not isinstance(value, str) else value


def _short(value: object) -> str:
    text = say(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"


def _given(value: Any) -> Iterable[tuple[str, Any]]:
    """The fields of a dataclass that differ from their defaults."""
    for field in fields(value):
        found = getattr(value, field.name)
        if field.default is MISSING or found != field.default:
            yield field.name, found


def tell_event(event: ev.Event) -> str:
    """An event as one reads it: its name and what differs from the defaults."""
    given = " ".join(f"{name}={say(value)}" for name, value in _given(event))
    return f"{ev.EVENT_NAMES[type(event)]} {given}".rstrip()


def replay_command(failure: Failure, subject: Subject) -> str:
    """The one command that repeats the failure."""
    path = str(failure.trace) if failure.trace else "TRACE"
    profile = ""
    if subject.profile and subject.profile is not default_profile(subject.target):
        profile = f" --profile {subject.profile.value}"
    store = f" --store {subject.store.value}" if subject.store is not StoreKind.AUTO else ""
    return (
        f"kvspec replay {shlex.quote(path)} --target {shlex.quote(subject.target)}{profile}{store}"
    )


def tell(failure: Failure, subject: Subject) -> str:
    """All that is printed of a failure."""
    violation = failure.violation
    where = f" ({violation.where})" if violation.where else ""
    lines = [
        f"{violation.clause.id}: {violation.clause.statement}",
        f"  why       {violation.clause.why}",
        f"  observed  {_short(violation.observed)}{where}",
        f"  allowed   {_short(violation.allowed)}",
        f"  step      {failure.step} of this trace:",
        *_tell_trace(failure.events),
    ]
    if not failure.repeats:
        lines.append(
            "  It did not break when run again: does the target depend on more than events?"
        )
    if failure.trace and failure.test:
        lines += [
            "  repeat",
            f"    pytest   {shlex.quote(str(failure.test))}",
            f"    vector   {failure.trace}",
            f"    command  {replay_command(failure, subject)}",
        ]
    return "\n".join(lines)


def _tell_trace(events: Events) -> list[str]:
    """The events with their index, the last one marked; the middle of a long trace left out."""
    last = len(events) - 1
    shown = range(len(events)) if last < 60 else [*range(10), *range(last - 40, last + 1)]
    lines = []
    for before, n in zip((-1, *shown), shown, strict=False):
        if n != before + 1:
            lines.append(f"           ... {n - before - 1} more")
        text = tell_event(events[n])
        text = text if len(text) <= 200 else f"{text[:200]}..."
        lines.append(f"    {'->' if n == last else '  '} {n:3}  {text}")
    return lines


# --- as files -------------------------------------------------------------------------------------


def keep(failure: Failure, subject: Subject, folder: Path = FOLDER) -> Failure:
    """Write the trace and a test that repeats it into a folder of their own, whole or not at all.

    The folder is named after what it holds, so nothing kept earlier is ever written over.
    """
    test = pytest_text(failure, subject)
    name, digest = failure.violation.clause.id, hashlib.sha256(test.encode()).hexdigest()[:8]
    place = folder / f"{name}-{digest}"
    test_name = f"test_{name.lower().replace('.', '_')}_{digest}.py"
    files = {"trace.jsonl": trace_text(failure.events, failure.observations), test_name: test}
    if not place.exists():
        try:
            _write_folder(place, files)
        except OSError as error:
            raise BadInput(f"{place}: cannot be written: {error.strerror or error}") from None
    return Failure(
        failure.violation,
        failure.events,
        failure.observations,
        failure.repeats,
        place / "trace.jsonl",
        place / test_name,
    )


def _write_folder(place: Path, files: dict[str, str]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        for name, text in files.items():
            (beside / name).write_text(text, encoding="utf-8")
        beside.chmod(0o755)
        os.rename(beside, place)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)
        if not place.exists():  # else another run was faster to write the same
            raise


def pytest_text(failure: Failure, subject: Subject) -> str:
    """A test that sends the events and so breaks the same clause."""
    clause = failure.violation.clause
    profile = f"Profile.{subject.profile.name}" if subject.profile else "None"
    lines = "".join(f"    {as_python(event)},\n" for event in failure.events)
    other_store = subject.store is not StoreKind.AUTO
    store = f", store=StoreKind.{subject.store.name}" if other_store else ""
    imported = "from kvspec.memory import StoreKind\n" if other_store else ""
    return f'''"""{clause.id}: {clause.statement}

Written by kvspec. It fails for as long as the target breaks the clause.
"""

# ruff: noqa
# mypy: ignore-errors

{imported}from kvspec.shrink import run_events
from kvspec.spec import events as ev
from kvspec.spec.clauses import Profile
from kvspec.spec.types import Adapter, Config, Connector, Group, GroupKind, Media
from kvspec.targets import find_factory

TARGET = {subject.target!r}
PROFILE = {profile}
EVENTS = (
{lines})


def test_{clause.id.lower().replace(".", "_")}():
    run_events(TARGET, find_factory(TARGET), PROFILE, EVENTS{store})
'''


def as_python(value: object) -> str:
    """The expression that makes this value, where the vocabulary is imported."""
    if is_dataclass(value) and not isinstance(value, type):
        given = ", ".join(f"{name}={as_python(v)}" for name, v in _given(value))
        prefix = "ev." if type(value) in ev.ANSWERS and not isinstance(value, Config) else ""
        return f"{prefix}{type(value).__name__}({given})"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(as_python, value)) + ("," if len(value) == 1 else "") + ")"
    return repr(value)
