"""Targets: implementations that can be judged, and how to find one by name.

A target is an object with a method per event, named and called as in `kvspec.spec.events`
(`submit(request, tokens, ...)`, `allocate(request, num_new_tokens, ...)`), each of which returns
the observation that the event is answered with. `configure(config)` comes first and returns
`Capabilities`; an event that the language calls an error is answered by raising `Rejected`, one
that the target cannot do by raising `Unsupported`. `kvspec.adapter` has a class to derive from.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from types import FrameType
from typing import Any, NoReturn

import msgspec

from kvspec.reference.manager import Manager as ReferenceManager
from kvspec.spec import events as ev
from kvspec.spec.clauses import Profile
from kvspec.spec.types import BlockId, Config, Group, GroupKind

from .adapter import Unsupported
from .capabilities import ESSENTIAL, LACKABLE, features, lacking
from .errors import ConfigDeclined, EventUnsupported, TargetHung, TargetUnusable, printable

Factory = Callable[[], Any]
MOST_SAID = 2000
"""Characters of an exception's text that are passed on."""

TIME_LIMIT = 10.0
"""Seconds that a target may take to answer one event."""

_FIELDS = {kind: tuple(f.name for f in fields(kind)) for kind in ev.ANSWERS if kind is not Config}


MAY_BE_ABSENT = (ev.BeginStep, ev.Execute, ev.Process, ev.OffloadRead, ev.OffloadDone)
"""Events that a manager may have no method for: they are about its worker or its connector."""


PROBE = Config(num_blocks=4, hash_unit=1, groups=(Group(GroupKind.FULL, 1),), max_model_len=2)
"""A cache that is configured only to hear what the target shows and lacks."""


class TargetFault(Exception):
    """The target raised while answering an event that it has to answer."""


class Target:
    """A configured target: asks the manager, and checks the form of what it answers."""

    def __init__(self, name: str, factory: Factory, config: Config) -> None:
        self.name = name
        self.trusted = name in BUILT_IN
        try:
            self.manager = _limited(factory, name, "factory()")
            self.limits_itself = getattr(self.manager, "limits_itself", False)
            capabilities = self._call("configure", [config])
        except (ev.Rejected, Unsupported) as declined:
            raise ConfigDeclined(
                f"target {name}: it declines the configuration: {declined}"
            ) from declined
        except BaseException as error:
            if _is_ours(error):
                raise
            raise TargetUnusable(
                f"target {name}: {_say(error)} while it was made and configured; "
                "it needs a factory without arguments and a method configure(config)"
            ) from error
        self.capabilities: ev.Capabilities = self._formed(ev.Capabilities, capabilities)
        unknown = set(self.capabilities.shows) - set(ev.SHOWABLE)
        if unknown:
            raise TargetUnusable(
                f"target {name}: configure says it shows {sorted(unknown)}; "
                f"what can be shown is {', '.join(ev.SHOWABLE)}"
            )
        needed = set(self.capabilities.lacks) & set(ESSENTIAL)
        unknown = set(self.capabilities.lacks) - set(LACKABLE)
        if needed or unknown:
            raise TargetUnusable(
                f"target {name}: configure says it lacks {sorted(needed or unknown)}; "
                f"{'nothing can be judged without' if needed else 'there is no such event'}"
                f"{'' if needed else ' or feature'}"
            )
        if missing := lacking(config, self.capabilities.lacks):
            raise ConfigDeclined(f"target {name}: it declines the configuration: lacks {missing}")

    @property
    def profile(self) -> Profile:
        """The profile that what it shows allows: accounting when it shows all its books."""
        shows_all = set(self.capabilities.shows) >= set(ev.SHOWABLE)
        return Profile.ACCOUNTING if shows_all else Profile.SOUNDNESS

    def lacks(self, event: ev.Event) -> str:
        """What the target says it lacks and this event needs, or nothing."""
        return lacking(event, self.capabilities.lacks)

    def ask(self, event: ev.Event) -> ev.Observation:
        """Send an event.

        Raises `EventUnsupported`, `TargetFault`, `TargetHung` or `TargetUnusable`.
        """
        name = ev.EVENT_NAMES[type(event)]
        arguments = [getattr(event, field) for field in _FIELDS[type(event)]]
        method = getattr(self.manager, name, None)
        if method is None and isinstance(event, MAY_BE_ABSENT):
            return ev.Done()
        if method is None:
            raise TargetUnusable(
                f"target {self.name}: it has no method {name}; "
                "write it, or name it in Capabilities.lacks"
            )
        try:
            answer = self._call(name, arguments)
        except ev.Rejected as rejected:
            return ev.Rejection(str(rejected))
        except Unsupported as unsupported:
            raise self._unsupported(name, event, unsupported) from unsupported
        except BaseException as error:
            if _is_ours(error):
                raise
            raise TargetFault(_say(error)) from error
        if answer is None and ev.ANSWERS[type(event)] is ev.Done:
            return ev.Done()
        formed: ev.Observation = self._formed(ev.ANSWERS[type(event)], answer)
        if isinstance(formed, ev.Books) and not self.trusted:
            self._check_shown(formed)
        return formed

    def _call(self, name: str, arguments: list[Any]) -> Any:
        """Call a method of the manager within the time limit, its own where it has one."""
        method = getattr(self.manager, name)
        if self.limits_itself:
            return method(*arguments)
        return _limited(lambda: method(*arguments), self.name, name)

    def _unsupported(self, name: str, event: ev.Event, why: Unsupported) -> TargetUnusable:
        """The error for an event that the target cannot do: it may be passed over, or not."""
        reason = f"target {self.name}: it does not support {name}: {str(why)[:MOST_SAID]}"
        if isinstance(event, ev.Snapshot):
            return TargetUnusable(f"{reason}; it says that it shows {self.capabilities.shows}")
        if name in ESSENTIAL and not features(event) and not isinstance(event, ev.Allocate):
            return TargetUnusable(f"{reason}; nothing can be judged without")
        return EventUnsupported(reason)

    def _check_shown(self, books: ev.Books) -> None:
        """Every book that was promised is there."""
        for name in self.capabilities.shows:
            if getattr(books, name) is None:
                raise TargetUnusable(
                    f"target {self.name}: configure says it shows {name}, its snapshot has none"
                )

    def _formed(self, kind: type, answer: Any) -> Any:
        """The answer, if it has the form it must have; lists are as good as tuples."""
        if self.trusted:
            return answer
        try:
            if not isinstance(answer, kind):
                raise msgspec.ValidationError(f"got {type(answer).__name__}")
            return msgspec.convert(msgspec.to_builtins(answer, str_keys=False), kind)
        except (msgspec.ValidationError, TypeError, ValueError, RecursionError) as error:
            raise TargetUnusable(
                f"target {self.name}: an answer has the wrong form: expected {kind.__name__}, "
                f"{str(error)[:MOST_SAID]}; see kvspec.spec.events"
            ) from error


def _say(error: BaseException) -> str:
    """The error in one printable line, even where its own text cannot be had."""
    try:
        text = str(error).strip().splitlines()
    except Exception:
        text = ["its text could not be had"]
    line = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
    return printable(line)[:MOST_SAID]


def _is_ours(error: BaseException) -> bool:
    """Whether an exception is about the run and not about what the target did."""
    return isinstance(error, KeyboardInterrupt | TargetHung | TargetUnusable)


def _refuse_to_exit(status: int) -> NoReturn:
    raise SystemExit(f"it called os._exit({status})")


class _Alarm:
    """The handler of the process's alarm, put in place once for many calls; what is called now."""

    installed = False
    target = ""
    event = ""

    @classmethod
    def rings(cls, _signal: int, _frame: FrameType | None) -> NoReturn:
        raise TargetHung(
            f"target {cls.target}: no answer to {cls.event} within {TIME_LIMIT:g} seconds; it hangs"
        )


@contextmanager
def time_limits() -> Iterator[None]:
    """Be ready to limit each call of a target, where the main thread runs and alarms exist.

    A call outside of this gets ready by itself, at several times the cost of asking a target.
    """
    main = threading.current_thread() is threading.main_thread()
    if _Alarm.installed or not main or sys.platform == "win32":
        yield
        return
    before = signal.signal(signal.SIGALRM, _Alarm.rings)
    _Alarm.installed = True
    try:
        yield
    finally:
        _Alarm.installed = False
        signal.signal(signal.SIGALRM, before)


def _limited(call: Callable[[], Any], target: str, event: str) -> Any:
    """Call with a time limit."""
    if not _Alarm.installed:
        with time_limits():
            return _limited(call, target, event) if _Alarm.installed else call()
    if threading.current_thread() is not threading.main_thread():
        return call()
    _Alarm.target, _Alarm.event, leave = target, event, os._exit
    os._exit = _refuse_to_exit
    signal.setitimer(signal.ITIMER_REAL, TIME_LIMIT)
    try:
        return call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        os._exit = leave


class canary(ReferenceManager):
    """The reference with one planted fault: a block that is taken keeps its old key.

    A suite that passes it judges nothing; CI runs it and must see it fail.
    """

    def _take(self, g: int, external: bool, copied: bool) -> BlockId:
        stale = self.pool.keys.get(self.pool.free_list[0])
        block = super()._take(g, external, copied)
        if stale is not None:
            self.pool.publish(block, *stale)
        return block


BUILT_IN = {
    "optimized": "kvspec.optimized.manager:Manager",
    "reference": "kvspec.reference.manager:Manager",
}
"""Targets known by a short name: our own, which are trusted to answer in the right form."""

ENGINES = {"vllm": "kvspec.engines.vllm:Vllm"}
"""Engines of others known by a short name."""


def find_factory(name: str) -> Factory:
    """The factory of a target by its name: built in, `package.module:factory`, or `cmd:PROGRAM`.

    Raises `TargetUnusable`.
    """
    if name.startswith("cmd:"):
        from .wire.engine import (
            find_command,  # it needs the forms, and those who need it not do not
        )

        return find_command(name)
    known = BUILT_IN | ENGINES
    module_name, colon, attribute = known.get(name, name).partition(":")
    if not colon or not module_name or not attribute:
        raise TargetUnusable(
            f"target {name!r} is unknown; use {', '.join(known)}, "
            "package.module:factory or cmd:PROGRAM ARGS"
        )
    if "" not in sys.path:
        sys.path.insert(0, "")  # a user's own module beside which the command is run
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise TargetUnusable(f"target {name}: {_say(error)}, importing {module_name}") from error
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise TargetUnusable(f"target {name}: {module_name} has no callable {attribute}")
    factory: Factory = found
    return factory
