"""What the wire costs: the same events, sent to the same target in this process and behind it."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from kvspec.errors import BadInput
from kvspec.replay import replay_config
from kvspec.scheduler import Limits, Scheduler
from kvspec.session import Session
from kvspec.spec import events as ev
from kvspec.targets import Factory, Target, find_factory, time_limits
from kvspec.workload import generated_workload

CONFIG = replay_config(blocks=256)
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class WireCost:
    """Milliseconds an event, the best of some rounds."""

    target: str
    events: int
    in_process: float
    over_wire: float

    @property
    def added(self) -> float:
        """What the wire adds to an event, in milliseconds."""
        return self.over_wire - self.in_process


def measure(target: str = "reference", rounds: int = ROUNDS, seed: int = 0) -> WireCost:
    """Send a generated workload's events both ways. Raises `BadInput`, `TargetUnusable`."""
    if target.startswith("cmd:"):
        raise BadInput(f"--target {target}: is behind the wire already; name one in Python")
    events = workload_events(seed)
    served = f"cmd:{shlex.join([sys.executable, '-m', 'kvspec.wire.serve', target])}"
    ways = [(name, find_factory(name)) for name in (target, served)]
    with time_limits():
        here, there = (
            min(_seconds(name, factory, events) for _ in range(rounds)) for name, factory in ways
        )
    return WireCost(target, len(events), *(1000 * s / len(events) for s in (here, there)))


def workload_events(seed: int) -> Sequence[ev.Event]:
    """The events of a small workload, prompts of some 1,500 tokens among them."""
    reference = find_factory("reference")
    session = Session("reference", reference, CONFIG, snapshots=False, moves_bytes=False)
    scheduler = Scheduler(session, iter(generated_workload(seed)), Limits(max_output=8))
    while scheduler.step():
        pass
    return tuple(session.events)


def _seconds(name: str, factory: Factory, events: Sequence[ev.Event]) -> float:
    target = Target(name, factory, CONFIG)
    began = time.perf_counter()
    for event in events:
        target.ask(event)
    return time.perf_counter() - began


def tell(cost: WireCost) -> str:
    """The cost in one line."""
    return (
        f"the wire adds {cost.added:.3f} ms to an event: {cost.over_wire:.3f} ms with "
        f"{cost.target} behind it, {cost.in_process:.3f} ms in process ({cost.events:,} events)"
    )
