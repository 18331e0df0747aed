"""Running the state machine in two processes: what comes of it does not depend on their number.

A search is cut into shards by its size alone, each with a seed of its own, so that the same seed
finds the same on one core and on many. A target that ends its process ends only the shard's.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from hypothesis.errors import Flaky

from kvspec.spec.clauses import Profile

from .capabilities import Tally
from .errors import ClauseBroken, TargetHung, TargetUnusable
from .failure import Subject, find_subject
from .machine import MachineRun, run_machine
from .memory import StoreKind, kind_here, require_store

SHARDS = 2
WORTH_IT = 200
"""Runs of the machine below which starting processes costs more than it gains."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a search. `target` is found by its name in the process that runs it."""

    target: str
    profile: Profile | None
    store: StoreKind
    examples: int
    steps: int
    seed: int
    max_seconds: float | None


@dataclass(slots=True)
class Outcome:
    """What a shard did; `broken` where it ended at a broken clause."""

    ledger: Tally = field(default_factory=Tally)
    run: MachineRun = field(default_factory=lambda: MachineRun(0, 0))
    broken: ClauseBroken | None = None


def search(
    subject: Subject, *, examples: int, steps: int, seed: int, max_seconds: float | None
) -> list[Outcome]:
    """Run the machine so many times. Raises `TargetUnusable`, `TargetHung`.

    Each shard stops at the first clause that it finds broken.
    """
    shards = cut(subject, examples=examples, steps=steps, seed=seed, max_seconds=max_seconds)
    if len(shards) == 1:
        return [run_shard(shards[0], subject)]
    with _workers(shards) as workers:
        return [_receive(shard, *worker) for shard, worker in zip(shards, workers, strict=True)]


def cut(
    subject: Subject, *, examples: int, steps: int, seed: int, max_seconds: float | None = None
) -> list[Shard]:
    """The shards of a search, by its size alone."""
    number = SHARDS if examples >= WORTH_IT else 1
    return [
        Shard(
            target=subject.target,
            profile=subject.profile,
            store=subject.store,
            examples=examples // number + (at < examples % number),
            steps=steps,
            seed=seed * SHARDS + at,
            max_seconds=max_seconds,
        )
        for at in range(number)
    ]


def run_shard(shard: Shard, subject: Subject) -> Outcome:
    """Run one shard in this process."""
    outcome = Outcome()
    try:
        outcome.run = run_machine(
            subject.target,
            subject.factory,
            profile=shard.profile,
            ledger=outcome.ledger,
            store=shard.store,
            examples=shard.examples,
            steps=shard.steps,
            seed=shard.seed,
            max_seconds=shard.max_seconds,
        )
    except ClauseBroken as broken:
        outcome.broken = broken
    except Flaky as flaky:
        outcome.broken = _inside(flaky, shard.target)
    return outcome


def _inside(flaky: Flaky, target: str) -> ClauseBroken:
    """The broken clause inside a failure that did not repeat; without one it is of no use."""
    pending: list[BaseException] = [flaky]
    while pending:
        error = pending.pop()
        if isinstance(error, ClauseBroken):
            return error
        if isinstance(error, BaseExceptionGroup):
            pending += error.exceptions
    raise TargetUnusable(
        f"target {target}: it answers differently when the same events are sent again; "
        "it must depend on nothing else"
    ) from flaky


# --- processes ------------------------------------------------------------------------------------


@contextmanager
def _workers(shards: list[Shard]) -> Iterator[list[tuple[BaseProcess, Connection]]]:
    """A process for each shard, ended with the block at the latest."""
    context = multiprocessing.get_context("spawn")
    workers: list[tuple[BaseProcess, Connection]] = []
    try:
        for shard in shards:
            ours, theirs = context.Pipe(duplex=False)
            process: BaseProcess = context.Process(target=_work, args=(shard, theirs), daemon=True)
            process.start()
            theirs.close()
            workers.append((process, ours))
        yield workers
    finally:
        for process, connection in workers:
            process.kill()
            process.join()
            connection.close()


def _work(shard: Shard, connection: Connection) -> None:
    """The whole life of a worker: an interrupt is for whoever started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout = sys.stderr  # whatever a target prints is no part of a report
    answer: Outcome | BaseException
    try:
        subject = find_subject(shard.target, shard.profile, shard.store)
        require_store(kind_here(shard.store))
        gc.freeze()  # what is loaded by now stays: looking at it again took a tenth of the time
        answer = run_shard(shard, subject)
    except (TargetUnusable, TargetHung) as error:
        answer = error
    connection.send(answer)


def _receive(shard: Shard, process: BaseProcess, connection: Connection) -> Outcome:
    try:
        answer: Outcome | BaseException = connection.recv()
    except EOFError:
        process.join()
        raise TargetUnusable(
            f"target {shard.target}: it ended the process it ran in, exit status "
            f"{process.exitcode}; a target must answer or raise"
        ) from None
    if isinstance(answer, BaseException):
        raise answer
    return answer
