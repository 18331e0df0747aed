"""Replaying a workload: a target, a scheduler and a trace, judged or at full speed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kvspec.spec.case import Ledger
from kvspec.spec.clauses import Profile
from kvspec.spec.events import Snapshot
from kvspec.spec.types import Config, Group, GroupKind, InvalidInput

from .errors import BadInput
from .scheduler import Limits, Scheduler
from .session import Session
from .targets import Factory
from .workload import Arrival

GROUPS = "full:512,mamba_align:512"
"""A hybrid model on the blocks of the trace; with block 16 the same hits take 32 times the work."""

HASH_UNIT = 128
"""Below the recurrent block, so that prompts leave partial entries and copies happen."""

BLOCKS = 4096
"""Some two million tokens: scarce enough that the public trace evicts all the time."""

MAX_MODEL_LEN = 2**17
"""The context of the model, in tokens: the longest request of the public trace fits."""

MAX_BLOCKS = 2**22
"""The largest pool: a larger number would only fill the memory."""

SNAPSHOT_EVERY = 64
"""Steps between two snapshots of a judged replay."""

Progress = Callable[[int], None]
"""Told after each step how many requests are behind it."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What a replay came to. `evictions` are known where judged, by the judge's own books."""

    requests: int
    infeasible: int
    prompt_tokens: int
    hit_tokens: int
    output_tokens: int
    steps: int
    evictions: int | None
    copies: int
    refusals: int
    preemptions: int
    events: int
    judged: bool

    @property
    def hit_rate(self) -> float:
        """The part of the prompt tokens that the cache served."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


def parse_groups(text: str) -> tuple[Group, ...]:
    """The groups of `kind:block_size[+eagle][+zeroed],...`. Raises `BadInput`.

    >>> parse_groups("full:16,mamba_align:512+zeroed")[1].zeroed
    True
    """
    kinds = {kind.value: kind for kind in GroupKind}
    groups: list[Group] = []
    for part in text.split(","):
        shape, *flags = part.strip().split("+")
        kind, _, size = shape.partition(":")
        known = kind in kinds and size.isascii() and size.isdigit() and len(size) <= 8
        if not known or len(set(flags)) < len(flags) or not set(flags) <= {"eagle", "zeroed"}:
            raise BadInput(
                f"groups: expected {' or '.join(kinds)}:BLOCK_SIZE, then +eagle or +zeroed, "
                f"got {part.strip()!r}"
            )
        groups.append(Group(kinds[kind], int(size), "eagle" in flags, "zeroed" in flags))
    return tuple(groups)


def replay_config(
    groups: str = GROUPS,
    hash_unit: int = HASH_UNIT,
    blocks: int = BLOCKS,
    max_model_len: int = MAX_MODEL_LEN,
) -> Config:
    """The cache to replay on. Raises `BadInput`."""
    if blocks > MAX_BLOCKS:
        raise BadInput(f"blocks: expected at most {MAX_BLOCKS}, got {blocks}")
    try:
        return Config(blocks, hash_unit, parse_groups(groups), max_model_len)
    except InvalidInput as error:
        raise BadInput(str(error)) from None


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for garbage less often: states are plain trees, and looking took a fifth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def replay_workload(
    arrivals: Iterable[Arrival],
    name: str,
    factory: Factory,
    config: Config,
    limits: Limits | None = None,
    *,
    judged: bool = True,
    profile: Profile | None = None,
    ledger: Ledger | None = None,
    snapshot_every: int = SNAPSHOT_EVERY,
    progress: Progress = lambda _: None,
) -> Totals:
    """Drive a target through a workload.

    Judged, each answer is held to the clauses, and the books are asked for every few steps and at
    the end. Raises `ClauseBroken`, `TargetUnusable`, `BadInput`.
    """
    session = Session(
        name,
        factory,
        config,
        profile=profile if judged else None,
        ledger=ledger,
        judged=judged,
        snapshots=False,
        moves_bytes=False,
        keeps_answers=False,
    )
    evicted = session.ledger.marks["eviction"]
    scheduler = Scheduler(session, iter(arrivals), limits or Limits())
    counts, shows = scheduler.counts, bool(session.target.capabilities.shows)
    with _rare_collections():
        while scheduler.step():
            if judged and shows and counts.steps % snapshot_every == 0:
                session.send(Snapshot())
            progress(scheduler.num_ended)
    if judged and shows:
        session.send(Snapshot())
    return Totals(
        requests=counts.requests,
        infeasible=counts.infeasible,
        prompt_tokens=counts.prompt_tokens,
        hit_tokens=counts.hit_tokens,
        output_tokens=counts.output_tokens,
        steps=counts.steps,
        evictions=session.ledger.marks["eviction"] - evicted if judged else None,
        copies=counts.copies,
        refusals=counts.refusals,
        preemptions=counts.preemptions,
        events=counts.events,
        judged=judged,
    )
