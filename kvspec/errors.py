"""What can go wrong besides a broken clause: one line each, naming what, where and what to do."""

from __future__ import annotations

from typing import Any

from kvspec.spec.case import Violation
from kvspec.spec.events import Event, Observation
from kvspec.spec.types import InvalidInput

__all__ = [
    "BadInput",
    "ClauseBroken",
    "ConfigDeclined",
    "EventUnsupported",
    "InvalidInput",
    "KvspecError",
    "TargetHung",
    "TargetUnusable",
]


def printable(text: str) -> str:
    r"""The text in one line: what a terminal would not show as a character is shown as an escape.

    >>> printable("é, one\nline")
    'é, one\\nline'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class KvspecError(Exception):
    """An error whose text is meant for the user, in one line; the command exits with 2."""

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))


class BadInput(KvspecError):
    """An option, a file or an event is wrong."""


class TargetUnusable(KvspecError):
    """The target cannot be loaded or configured, or answers in no form that can be judged."""


class ConfigDeclined(TargetUnusable):
    """The target says that it is not made for this configuration: it is passed over."""


class EventUnsupported(TargetUnusable):
    """The target says that it cannot do what an event asks: the event counts as not sent."""


class TargetHung(BaseException):
    """The target gave no answer within its time limit.

    Not an `Exception`, so that neither the target nor a test engine swallows it.
    """


class ClauseBroken(AssertionError):
    """The target broke a clause; `events` ends with the event at which it was seen.

    `observations` are what the events after the first were answered with, as far as they were.
    """

    def __init__(
        self,
        violation: Violation,
        events: tuple[Event, ...],
        observations: tuple[Observation, ...] = (),
    ) -> None:
        super().__init__(str(violation))
        self.violation = violation
        self.events = events
        self.observations = observations

    def __reduce__(self) -> tuple[Any, ...]:
        return ClauseBroken, (self.violation, self.events, self.observations)


class ScenarioFailed(AssertionError):
    """A scenario saw something else than it must show, though no clause was broken."""

    def __init__(self, text: str, events: tuple[Event, ...]) -> None:
        super().__init__(text)
        self.events = events
