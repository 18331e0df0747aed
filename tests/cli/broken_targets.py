"""Targets that are wrong in one way each; the command finds them as `NAME("Asserts")`."""

from __future__ import annotations

import itertools
import sys
import time
from typing import Any

from kvspec.reference.manager import Manager
from kvspec.spec import events as ev
from kvspec.spec.types import Config

NAME = "tests.cli.broken_targets:{}".format


def raises() -> Any:
    """A factory that raises."""
    raise RuntimeError("no device found\nsecond line")


def leaves() -> Any:
    """A factory that ends the process."""
    sys.exit(0)


class NoConfigure:
    """No manager at all."""


class NoLookup(Manager):
    """A method is missing."""

    lookup = None  # type: ignore[assignment]


class WrongShape(Manager):
    """An answer of another type."""

    def lookup(self, request: Any) -> Any:
        """Answer with a bare length."""
        return 4


class WrongField(Manager):
    """An answer with a field of another type."""

    def lookup(self, request: Any) -> Any:
        """Answer with a length that is text."""
        return ev.Hit(((), ()), "four")  # type: ignore[arg-type]


class WrongGroups(Manager):
    """An answer with a list too many."""

    def lookup(self, request: Any) -> Any:
        """Answer for seven groups."""
        return ev.Hit(((),) * 7, 0)


class ShowsMore(Manager):
    """It shows what cannot be shown."""

    def configure(self, config: Config) -> ev.Capabilities:
        """Show the weather."""
        super().configure(config)
        return ev.Capabilities("odd", shows=("weather",))


class ShowsNothing(Manager):
    """A conforming target that shows no books."""

    def configure(self, config: Config) -> ev.Capabilities:
        """Show nothing."""
        super().configure(config)
        return ev.Capabilities("shy", lacks=("lookup_for_connector",))


class LacksAll(Manager):
    """It takes no event."""

    def configure(self, config: Config) -> ev.Capabilities:
        """Lack all there is."""
        super().configure(config)
        return ev.Capabilities("none", lacks=tuple(ev.EVENT_NAMES.values()))


class LacksOdd(Manager):
    """It lacks an event that there is not."""

    def configure(self, config: Config) -> ev.Capabilities:
        """Lack the weather."""
        super().configure(config)
        return ev.Capabilities("odd", lacks=("weather",))


class LacksLookup(Manager):
    """A conforming target without a prefix cache to look into."""

    lookup = None  # type: ignore[assignment]

    def configure(self, config: Config) -> ev.Capabilities:
        """Lack the lookup."""
        shown = super().configure(config).shows
        return ev.Capabilities("plain", shows=shown, lacks=("lookup",))


class Asserts(Manager):
    """An assertion of its own fails."""

    def finish(self, request: Any) -> ev.Done:
        """Fail."""
        raise AssertionError("free list lost block 3")


class Exits(Manager):
    """It ends the process, with a status that means success."""

    def finish(self, request: Any) -> ev.Done:
        """Exit."""
        sys.exit(0)


class Hangs(Manager):
    """It never answers."""

    def finish(self, request: Any) -> ev.Done:
        """Sleep for good."""
        while True:
            time.sleep(1)


_TURN = itertools.count()


class Moody(Manager):
    """It answers differently from run to run."""

    def begin_step(self) -> ev.Done:
        """Fail now and then."""
        if next(_TURN) % 7 == 6:
            raise RuntimeError("not today")
        return super().begin_step()
