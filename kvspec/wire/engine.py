"""The target `cmd:PROGRAM ARGS`: an engine that is spoken to over its standard input and output.

`cmd:--strict PROGRAM` holds every answer to the published schema, `cmd:--seconds=N PROGRAM` gives
each answer so long.
"""

from __future__ import annotations

import atexit
import os
import shlex
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from msgspec import UNSET

from kvspec.adapter import Unsupported
from kvspec.capabilities import lacking
from kvspec.errors import BadInput, TargetUnusable
from kvspec.spec import events as ev
from kvspec.spec.types import Config

from . import faults as f
from . import messages as m
from .child import Child, show

PREFIX = "cmd:"

SECONDS, START_SECONDS = 10.0, 60.0
"""What one answer may take, and the first one: an engine may have much to load."""

MOST_CHILDREN = 4
"""Processes of one command at a time; more are needed only where caches are held on to."""


class EngineError(Exception):
    """The engine answered an event with an error: a broken clause, as an exception would be."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line after `cmd:`."""

    target: str
    argv: tuple[str, ...]
    strict: bool = False
    seconds: float = SECONDS


def parse_command(target: str) -> Command:
    """The command of a target's name. Raises `TargetUnusable`."""
    try:
        words = shlex.split(target.removeprefix(PREFIX))
    except ValueError as error:
        raise TargetUnusable(f"target {target}: cannot be split into words: {error}") from None
    strict, seconds = False, SECONDS
    while words and words[0].startswith("--"):
        option, _, value = words.pop(0).partition("=")
        if option == "--strict" and not value:
            strict = True
        elif option == "--seconds" and _seconds(value):
            seconds = float(value)
        else:
            raise TargetUnusable(
                f"target {target}: before the program there may be --strict and --seconds=N "
                f"(above 0, at most 86400), not {option}{'=' if value else ''}{value}"
            )
    if not words:
        raise TargetUnusable(f"target {target!r}: names no program; use cmd:PROGRAM ARGS")
    return Command(target, tuple(words), strict, seconds)


def _seconds(text: str) -> bool:
    with suppress(ValueError):
        return 0 < float(text) <= 86400
    return False


def strictly(target: str) -> str:
    """The same target, its answers held to the published schema.

    >>> strictly("cmd:./engine"), strictly("reference")
    ('cmd:--strict ./engine', 'reference')
    """
    if not target.startswith(PREFIX) or parse_command(target).strict:
        return target
    return f"{PREFIX}--strict {target.removeprefix(PREFIX)}"


class Line:
    """A child that has answered `start`."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.pid = os.getpid()
        self.child = Child(command.target, command.argv)
        self.events = 0
        self.owner: Callable[[], Engine | None] = lambda: None
        self.started = self._start()

    def _start(self) -> m.Started:
        seconds = max(START_SECONDS, self.command.seconds)
        answer = self.child.exchange(m.START, "start", seconds)
        try:
            field, value = m.read_answer(answer, "start", self.command.strict)
        except BadInput as error:
            fault = f.GARBAGE if not answer.startswith(b"{") else f.OTHER_PROTOCOL
            raise self.child.fault(fault, f"{error}: {show(answer)}") from None
        if field != "result":
            raise self.child.fault(f.OTHER_PROTOCOL, f"{field}: {value}")
        shown = value.capabilities
        started = m.Started(
            value.protocol,
            value.name,
            value.language,
            value.version,
            value.tracker,
            m.Shown(shown.shows, shown.lacks),
        )
        return started

    def ask(self, name: str, line: bytes) -> Any:
        """The result of an event. Raises `Unsupported`, `Rejected`, `EngineError`, `WireFault`."""
        self.events = 0 if name == "configure" else self.events + 1
        step = f"{name}, event {self.events} after configure" if self.events else name
        answer = self.child.exchange(line, step, self.command.seconds)
        try:
            field, value = m.read_answer(answer, name, self.command.strict)
        except BadInput as error:
            fault = f.WRONG_FORM if answer.startswith(b"{") else f.GARBAGE
            raise self.child.fault(fault, f"{error}: {show(answer)}") from None
        if field == "result":
            return value
        _refuse(field, value)

    def stop(self) -> None:
        """End the conversation. Raises `WireFault` where the program does not end as it should."""
        try:
            if self.child.usable:
                answer = self.child.exchange(m.STOP, "stop", self.command.seconds)
                field, value = m.read_answer(answer, "stop", self.command.strict)
                if field != "result":
                    raise BadInput(f"{field}: {value}")
                status = self.child.wait()
                if status:
                    raise self.child.fault(f.NOT_STOPPED, f"exit status {status}")
                if status is None:
                    raise self.child.fault(f.NOT_STOPPED, "it still runs")
        except BadInput as error:
            raise self.child.fault(f.NOT_STOPPED, str(error)) from None
        finally:
            self.child.kill()


def _refuse(field: str, reason: str) -> NoReturn:
    if field == "unsupported":
        raise Unsupported(reason)
    if field == "rejected":
        raise ev.Rejected(reason)
    raise EngineError(reason)


class Pool:
    """The children of one command: each serves one cache at a time, and is used again after it."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self._lines: list[Line] = []

    def __call__(self) -> Engine:
        """A target that has no child yet: `configure` gives it one."""
        return Engine(self)

    def lend(self, engine: Engine) -> Line:
        """A child that no living target uses; with too many alive, the longest lent is taken."""
        line = self._free()
        self._lines = [other for other in self._lines if other is not line]
        self._lines.append(line)
        line.owner = weakref.ref(engine)
        return line

    def _free(self) -> Line:
        ours, pid = [], os.getpid()
        for line in self._lines:
            if line.pid == pid and line.child.usable:
                ours.append(line)
            elif line.pid == pid:
                line.child.kill()
        self._lines = ours
        for line in ours:
            if line.owner() is None:
                return line
        return ours[0] if len(ours) >= MOST_CHILDREN else Line(self.command)

    def stop(self) -> None:
        """Stop all children. Raises `WireFault` where one does not end as it should."""
        lines, self._lines = self._lines, []
        for line in lines:
            line.stop()

    def close(self) -> None:
        """Stop all children, in peace where they let us."""
        for line in self._lines:
            if line.pid == os.getpid():
                with suppress(TargetUnusable):
                    line.stop()
        self._lines = []


class Engine:
    """A target in another process: a method for each event, as `kvspec.spec.events` names them."""

    limits_itself = True
    """Answers come within a time limit of their own, told with all that is known of the child."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._line: Line | None = None

    def configure(self, config: Config) -> ev.Capabilities:
        """Have a child start afresh with this configuration."""
        line = self._line = self._pool.lend(self)
        started = line.started
        can = started.capabilities
        if missing := lacking(config, can.lacks):
            raise Unsupported(f"lacks {missing}")
        here = line.ask("configure", m.event_line(config))
        return ev.Capabilities(
            started.name,
            started.version,
            can.shows if here.shows is UNSET else here.shows,
            can.lacks if here.lacks is UNSET else here.lacks,
        )

    def answer(self, event: ev.Event) -> Any:
        """What the child answers an event."""
        line = self._line
        if line is None or line.owner() is not self:
            raise TargetUnusable(
                f"target {self._pool.command.target}: its process serves another cache by now; "
                f"at most {MOST_CHILDREN} are kept at a time"
            )
        return line.ask(ev.EVENT_NAMES[type(event)], m.event_line(event))


def _method(kind: Any) -> Callable[..., Any]:
    def method(self: Engine, *arguments: Any, **named: Any) -> Any:
        return self.answer(kind(*arguments, **named))

    method.__doc__ = kind.__doc__
    return method


for _kind, _name in ev.EVENT_NAMES.items():
    if _kind is not Config:
        setattr(Engine, _name, _method(_kind))


@cache
def find_command(target: str) -> Pool:
    """The factory of a target's name that begins with `cmd:`. Raises `TargetUnusable`."""
    pool = Pool(parse_command(target))
    atexit.register(pool.close)
    return pool
