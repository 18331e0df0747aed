"""Whatever a target answers, the judge has a verdict: a clause, or that the answer has no form."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest

from kvspec.errors import ClauseBroken, TargetUnusable
from kvspec.machine import run_machine
from kvspec.reference.manager import Manager
from kvspec.spec import events as ev
from kvspec.spec.types import Config


def twist(value: Any, rng: random.Random) -> Any:
    """The value with one thing in it changed."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice([-1, 1, 5, -100, 1000])
    if isinstance(value, str):
        return value + "'"
    if isinstance(value, tuple):
        items = list(value)
        how = rng.randrange(4)
        if items and how == 0:
            items.pop(rng.randrange(len(items)))
        elif items and how == 1:
            items.append(rng.choice(items))
        elif items and how == 2:
            items.reverse()
        elif items:
            at = rng.randrange(len(items))
            items[at] = twist(items[at], rng)
        else:
            items.append(rng.choice([0, 1, 99]))
        return tuple(items)
    if isinstance(value, dict):
        changed = dict(value)
        if changed:
            key = rng.choice(sorted(changed))
            changed[key] = twist(changed[key], rng)
        return changed
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        if names:
            name = rng.choice(names)
            return dataclasses.replace(value, **{name: twist(getattr(value, name), rng)})
    return value


class Liar(Manager):
    """The reference, but some of its answers are twisted. The books are shown or not."""

    seed = 0
    shows: tuple[str, ...] = ev.SHOWABLE

    def configure(self, config: Config) -> ev.Capabilities:
        super().configure(config)
        self.rng = random.Random(self.seed)
        return ev.Capabilities("liar", shows=self.shows)

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name == "configure" or name not in ev.EVENT_NAMES.values():
            return found
        rng = self.rng

        def answer(*args: Any) -> Any:
            told = found(*args)
            often = 0.003 if name == "snapshot" else 0.05
            return twist(told, rng) if rng.random() < often else told

        return answer


@pytest.mark.parametrize("shows", [ev.SHOWABLE, ()])
def test_no_lie_crashes_the_judge(shows: tuple[str, ...]) -> None:
    broken: set[str] = set()
    for seed in range(110):
        factory = type("Liar", (Liar,), {"seed": seed, "shows": shows})
        try:
            run_machine("liar", factory, examples=12, seed=seed)
        except ClauseBroken as error:
            broken.add(error.violation.clause.id)
        except TargetUnusable:
            broken.add("no form")
    print(sorted(broken))
    assert len(broken) > (18 if shows else 8)
