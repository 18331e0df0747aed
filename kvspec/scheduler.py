"""A simple continuous-batching scheduler: what drives a cache in production, over one session.

A step gives running requests their next tokens first, then admits waiting ones in their order,
until the token budget is spent or the cache refuses. A running request that is refused takes the
blocks of the youngest one behind it. Since nothing behind the oldest request can stand in its way,
the oldest advances in every step, and so every request ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import lcm
from typing import TypeVar

from kvspec.spec import events as ev
from kvspec.spec.chunks import chunk_length, free_from
from kvspec.spec.types import Config, Connector, RequestId, ceil_div

from .errors import BadInput, TargetUnusable
from .session import Session
from .workload import MAX_LENGTH, Arrival, sampled_token

Answer = TypeVar("Answer", bound=ev.Observation)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a step may hold. `token_budget` counts the tokens of all its requests.

    `long_prefill_cap` caps one request's chunk, 0 for no cap; `max_output` caps the tokens that a
    request samples, None for as many as recorded.
    """

    token_budget: int = 8192
    max_running: int = 64
    long_prefill_cap: int = 0
    max_output: int | None = None

    def __post_init__(self) -> None:
        least = {"token_budget": 1, "max_running": 1, "long_prefill_cap": 0, "max_output": 0}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not least[field.name] <= value <= MAX_LENGTH:
                raise BadInput(
                    f"{field.name}: expected {least[field.name]} to {MAX_LENGTH}, got {value}"
                )


@dataclass(slots=True)
class Counts:
    """What happened so far. Hits are those of first admissions: what the cache saved a user."""

    requests: int = 0
    infeasible: int = 0
    prompt_tokens: int = 0
    hit_tokens: int = 0
    output_tokens: int = 0
    steps: int = 0
    copies: int = 0
    refusals: int = 0
    preemptions: int = 0
    events: int = 0


@dataclass(slots=True)
class Live:
    """A request that was submitted and has not finished; `known` counts all its tokens."""

    number: int
    name: RequestId
    prompt: int
    output: int
    known: int
    computed: int = 0
    sampled: int = 0
    boundary: int = 0
    admitted: bool = False


class Scheduler:
    """Drives a session through a workload, step by step."""

    def __init__(self, session: Session, arrivals: Iterator[Arrival], limits: Limits) -> None:
        self.session, self.config, self.limits = session, session.config, limits
        self.arrivals = arrivals
        self.counts = Counts()
        self.running: list[Live] = []
        self.waiting: deque[Live] = deque()
        self.granted: list[tuple[Live, int]] = []
        self.budget = 0
        self.exhausted = False
        recurrent = [g.block_size for g in self.config.groups if g.recurrent]
        self.grid = lcm(*recurrent) if recurrent else 0
        self.eagle = any(group.eagle for group in self.config.groups)

    @property
    def num_ended(self) -> int:
        """How many requests finished, or were dropped."""
        return self.counts.requests - len(self.running) - len(self.waiting)

    def step(self) -> bool:
        """Run one step; false when nothing is left to do."""
        if not self.running and self._next_waiting() is None:
            return False
        self._send(ev.BeginStep())
        self.budget, self.granted = self.limits.token_budget, []
        if self._serve_running():
            self._admit_waiting()
        if not self.granted:
            self._stuck()
        self._dispatch()
        for request, new in self.granted:
            self._advance(request, new)
        return True

    # --- events ---------------------------------------------------------------------------------

    def _send(self, event: ev.Event) -> ev.Observation:
        self.counts.events += 1
        return self.session.send(event)

    def _ask(self, event: ev.Event, kind: type[Answer]) -> Answer:
        answer = self._send(event)
        if not isinstance(answer, kind):
            raise TargetUnusable(
                f"target {self.session.target.name}: {answer} is no answer to {event}"
            )
        return answer

    def _stuck(self) -> None:
        """Say who waits for what."""
        request = (self.running or self.waiting)[0]
        need = peak_blocks(self.config, request.prompt + request.output)
        raise TargetUnusable(
            f"target {self.session.target.name}: the replay is stuck in step "
            f"{self.counts.steps + 1}: request {request.name} ({request.computed} of "
            f"{request.known} tokens computed) needs {need} of {self.config.num_blocks - 1} blocks "
            "and was refused with nobody in its way"
        )

    # --- running requests -----------------------------------------------------------------------

    def _serve_running(self) -> bool:
        """Give each running request its next tokens; false when one had to be preempted."""
        preempted, turn = self.counts.preemptions, 0
        while turn < len(self.running) and self.budget:
            request = self.running[turn]
            new = self._chunk(request, request.computed)
            while new and not self._allocate(request, new) and turn < len(self.running) - 1:
                self._preempt(self.running.pop())
            turn += 1
        return self.counts.preemptions == preempted

    def _allocate(self, request: Live, new: int) -> bool:
        grant = self._ask(ev.Allocate(request.name, new), ev.Grant)
        if grant.granted:
            self.budget -= new
            self.granted.append((request, new))
        else:
            self.counts.refusals += 1
        return grant.granted

    def _preempt(self, victim: Live) -> None:
        self._send(ev.Preempt(victim.name))
        self.counts.preemptions += 1
        victim.computed = 0
        self.waiting.appendleft(victim)

    def _chunk(self, request: Live, start: int) -> int:
        """How many tokens a request computes next; 0 when it has to wait for more budget."""
        limits, rest = self.limits, request.known - start
        wanted = min(rest, self.budget, limits.long_prefill_cap or rest)
        if not self.grid:
            return wanted
        chunk = ev.Chunk(
            start,
            wanted,
            request.prompt,
            request.known,
            self.grid,
            self.config.hash_unit,
            limits.token_budget,
            limits.long_prefill_cap,
            self.config.fine,
            self.eagle,
            request.boundary,
        )
        if start >= free_from(chunk):
            return wanted
        if self.session.lacks(chunk):
            return chunk_length(chunk)
        return self._ask(chunk, ev.ChunkLength).num_tokens

    # --- waiting requests -----------------------------------------------------------------------

    def _admit_waiting(self) -> None:
        """Admit in order, until somebody has to wait."""
        while self.budget and len(self.running) < self.limits.max_running:
            request = self._next_waiting()
            if request is None or not self._admit(request):
                return
            self.running.append(self.waiting.popleft())

    def _next_waiting(self) -> Live | None:
        """The head of the queue; the next arrival is submitted when nobody waits."""
        while not self.waiting and not self.exhausted:
            arrival = next(self.arrivals, None)
            if arrival is None:
                self.exhausted = True
            else:
                self._arrive(arrival)
        return self.waiting[0] if self.waiting else None

    def _arrive(self, arrival: Arrival) -> None:
        number, output = self.counts.requests, arrival.output_length
        self.counts.requests += 1
        if self.limits.max_output is not None:
            output = min(output, self.limits.max_output)
        total = arrival.input_length + output
        fits = peak_blocks(self.config, total) < self.config.num_blocks
        if total > self.config.max_model_len or not fits:
            self.counts.infeasible += 1
            return
        name = RequestId(f"r{number}")
        self._send(ev.Submit(name, arrival.prompt()))
        self.waiting.append(Live(number, name, arrival.input_length, output, arrival.input_length))

    def _admit(self, request: Live) -> bool:
        """Look up and allocate; alone, and refused with a hit, a request goes without it.

        The shared source of a private copy is a block more than the request needs by itself.
        """
        hit = self._ask(ev.Lookup(request.name), ev.Hit)
        start, request.boundary = hit.num_tokens, hit.shared_prefix_boundary
        new = self._chunk(request, start)
        if not new:
            return False
        if self.grid:  # a chunk came between, so the lookup is not the one directly before
            self._ask(ev.Lookup(request.name), ev.Hit)
        admitted = self._allocate(request, new)
        if not admitted and start and not self.running:
            start = 0
            admitted = self._allocate(request, self._chunk(request, start))
        if admitted:
            request.computed = start
            if not request.admitted:
                request.admitted = True
                self.counts.prompt_tokens += request.prompt
                self.counts.hit_tokens += start
        return admitted

    # --- the rest of a step ---------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Drain the lists, run the step, let go of what its copies held."""
        if any(group.zeroed for group in self.config.groups):
            self._send(ev.TakeZeroing())
        copies = self._ask(ev.TakeCopies(), ev.Copies).copies
        self.counts.copies += len(copies)
        if self.config.connector is not Connector.NONE:
            self._send(ev.TakeOffloads())
        number = self._ask(ev.EndStep(), ev.Dispatched).step
        self.counts.steps += 1
        self._send(ev.Execute())
        self._send(ev.Process())
        if copies:
            self._send(ev.ReleaseRetained(number))

    def _advance(self, request: Live, new: int) -> None:
        """What the step computed is known; a request with nothing left to compute samples."""
        request.computed += new
        if request.computed < request.known:
            return
        if request.sampled < request.output:
            token = sampled_token(request.number, request.sampled)
            self._send(ev.Append(request.name, (token,)))
            request.known += 1
            request.sampled += 1
            self.counts.output_tokens += 1
        if request.sampled == request.output:
            self._send(ev.Finish(request.name))
            self.running.remove(request)


def peak_blocks(config: Config, total: int) -> int:
    """The most blocks that a request of `total` tokens holds at once when it is alone.

    A recurrent group keeps the state that a chunk starts from and the one it ends with, or, where
    a partial tail moves, the owner's block and its copy.
    """
    computed = max(total - 1, 1)  # the last token is sampled, never computed
    need = 0
    for group in config.groups:
        slots = ceil_div(computed, group.block_size)
        need += min(slots, 1 if slots == 1 and not config.fine else 2) if group.recurrent else slots
    return need
