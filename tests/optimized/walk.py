"""Random admissible events for a pair of managers: the plain one says what the fast one must say.

Deterministic: the same seed gives the same walk. Whatever a rule would need is drawn from the
judge's state, so that nearly every proposal may be sent.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from kvspec.optimized.manager import Manager as Fast
from kvspec.reference.manager import Manager as Plain
from kvspec.spec import events as ev
from kvspec.spec.admit import why_not
from kvspec.spec.case import Ledger, Violation
from kvspec.spec.judge import initial_state, judge
from kvspec.spec.state import Request
from kvspec.spec.types import (
    Adapter,
    BlockId,
    Config,
    Connector,
    Group,
    GroupKind,
    Media,
    RequestId,
    Step,
    Token,
    align_down,
    ceil_div,
)

FIELDS = {kind: [f.name for f in fields(kind)] for kind in ev.ANSWERS if kind is not Config}
ENDS = ("rest", "rest", "block", "tail", "one", "two", "past")
"""Where a chunk ends."""


def random_config(rng: random.Random) -> Config:
    """One or two full groups, up to two recurrent ones; pools from scarce to ample."""
    unit = rng.randint(1, 4)

    def group(kind: GroupKind) -> Group:
        eagle = kind is GroupKind.FULL and rng.random() < 0.25
        return Group(kind, unit * rng.choice([1, 2, 2, 3, 4]), eagle, rng.random() < 0.3)

    full = [group(GroupKind.FULL) for _ in range(rng.choice([1, 1, 1, 2]))]
    recurrent = [group(GroupKind.MAMBA_ALIGN) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    groups = [*full, *recurrent]
    rng.shuffle(groups)
    longest = rng.randint(4, 12) * unit
    least = sum(ceil_div(longest, g.block_size) for g in full) + 3 * len(recurrent)
    in_flight, connector = rng.choice([1, 1, 2, 3]), rng.choice([*Connector, Connector.DIVERGING])
    return Config(
        num_blocks=1 + least + rng.choice([1, 2, 4, 8, 16, 40, 40]),
        hash_unit=unit,
        groups=tuple(groups),
        max_model_len=longest,
        caching=rng.random() < 0.95,
        connector=connector,
        deferral=rng.random() < 0.5 or (in_flight > 1 and connector is not Connector.NONE),
        max_in_flight=in_flight,
    )


class Walk:
    """Both managers, the judge's state, and what may happen next."""

    def __init__(self, seed: int, ledger: Ledger, sent: Counter[str]) -> None:
        self.rng = random.Random(seed)
        self.config = random_config(self.rng)
        self.plain, self.fast = Plain(), Fast()
        assert self.plain.configure(self.config).shows == self.fast.configure(self.config).shows
        self.state = initial_state(self.config)
        self.ledger, self.sent = ledger, sent
        self.known: list[tuple[Token, ...]] = [(Token(0),)]
        self.names = 0
        self.trace: list[ev.Event] = []

    # --- sending --------------------------------------------------------------------------------

    def may(self, event: ev.Event) -> bool:
        """Whether an event may be sent now."""
        return why_not(self.state, event) is None

    def send(self, event: ev.Event) -> Any:
        """Send an event, if it may be sent, and look at all books after it."""
        if not self.may(event):
            return None
        self.trace.append(event)
        self.sent[type(event).__name__] += 1
        answer = self._ask_both(event)
        self._ask_both(ev.Snapshot())
        self.fast.check()
        return answer

    def _ask_both(self, event: ev.Event) -> Any:
        expected, observed = _ask(self.plain, event), _ask(self.fast, event)
        assert observed == expected, self._told(event, f"{observed}\nbut plain {expected}")
        # The two answers are equal, so that one verdict is the verdict on both.
        verdict = judge(self.state, event, observed, ledger=self.ledger)
        assert not isinstance(verdict, Violation), self._told(event, str(verdict))
        self.state = verdict
        return observed

    def _told(self, event: ev.Event, what: str) -> str:
        trace = "\n".join(map(repr, (self.config, *self.trace)))
        return f"{trace}\n-> {event}: {what}"

    # --- proposing ------------------------------------------------------------------------------

    def go(self, moves: int) -> None:
        """Make random moves."""
        rules: list[tuple[int, Callable[[], object]]] = [
            (8, self.submit), (22, self.serve), (12, self.admit), (12, self.go_on), (6, self.drain),
            (8, self.run), (4, self.release), (8, self.sample), (8, self.leave),
            (10, self.admit_external), (6, self.load), (3, self.look), (3, self.offload),
            (3, self.disturb), (2, self.ask_chunk), (3, self.meet), (8, self.move_own_tail),
        ]  # fmt: skip
        weights = [weight for weight, _ in rules]
        for _, rule in self.rng.choices(rules, weights, k=moves):
            rule()

    def one(self, holds: bool) -> RequestId | None:
        """One of the requests that hold blocks, or that wait."""
        found = [n for n, r in self.state.requests.items() if bool(r.tables) is holds]
        return self.rng.choice(found) if found else None

    def any_name(self) -> RequestId:
        """A request, or one that there is not."""
        return self.rng.choice([*self.state.requests, *self.state.detached, RequestId("?")])

    def submit(self) -> RequestId | None:
        """A request arrives that often continues or cuts what was seen; ids come back."""
        if len(self.state.requests) > 6:
            return None
        rng = self.rng
        stem = rng.choice(self.known) if rng.random() < 0.8 else ()
        stem = stem[: rng.randint(0, len(stem))] if rng.random() < 0.4 else stem
        tail = tuple(Token(rng.randint(0, 1)) for _ in range(rng.randint(0, 8)))
        tokens = (stem + tail)[: self.config.max_model_len] or (Token(1),)
        extra: dict[str, Any] = {}
        if rng.random() < 0.15:
            start = rng.randint(0, len(tokens) - 1)
            extra = rng.choice([
                {"salt": "s"}, {"adapter": Adapter("a", rng.randint(0, 1))},
                {"media": (Media("m", start, 1),)},
            ])  # fmt: skip
        self.names = (self.names + 1) % 9
        name = RequestId(f"r{self.names}")
        if name in self.state.requests:
            return None
        self.known = [tokens, *self.known][:6]
        self.send(ev.Submit(name, tokens, **extra))
        return name

    def open_pass(self) -> None:
        """Most often make sure that something may be granted."""
        if self.state.open is not None and self.state.open.drained:
            self.drain()
        if self.state.open is None:
            if not self.may(ev.BeginStep()):
                self.run()
            self.send(ev.BeginStep())

    def chunk(self, request: Request, start: int) -> int:
        """How many tokens to ask for."""
        config, known, how = self.config, len(request.prefix), self.rng.choice(ENDS)
        block = max(group.block_size for group in config.groups)
        end = {
            "rest": known,
            "block": align_down(start, block) + block,
            "tail": align_down(request.num_prompt_tokens, config.hash_unit),
            "one": start + 1,
            "two": start + 2,
            "past": known + 2,
        }[how]
        end = end if end > start else start + 1
        drafts = how == "past" and not any(group.recurrent for group in config.groups)
        return max(min(end, config.max_model_len if drafts else known) - start, 0)

    def allocate(self, name: RequestId, start: int, external: int = 0) -> None:
        """Ask for a chunk, now and then with lookahead or without caching, rarely for nothing."""
        rng, request = self.rng, self.state.requests[name]
        external = min(external, len(request.prefix) - 1 - start)
        none = external > 0 and rng.random() < 0.7
        new = 0 if none else self.chunk(request, start + external)
        new = 0 if rng.random() < 0.02 else new
        lookahead = rng.choice([0, 0, 0, 1, 3])
        self.send(ev.Allocate(name, new, max(external, 0), lookahead, rng.random() < 0.1))

    def admit(self) -> None:
        """A waiting request is looked up and asks; now and then something comes between."""
        self.open_pass()
        name = self.one(holds=False)
        if name is None:
            return
        hit = self.send(ev.Lookup(name)) if self.rng.random() < 0.97 else None
        if self.rng.random() < 0.05:
            between: list[ev.Event] = [ev.Snapshot(), ev.Reset(), ev.Evict((BlockId(1),))]
            self.send(self.rng.choice(between))
            hit = hit if self.state.last_lookup else None
        if name in self.state.requests:
            self.allocate(name, hit.num_tokens if hit else 0)

    def admit_external(self) -> None:
        """A waiting request gets external tokens behind a hit that is cut to block ends."""
        self.open_pass()
        name = self.one(holds=False)
        if name is None:
            return
        hit = self.send(ev.LookupForConnector(name))
        block = self.config.scheduler_block
        local = max(align_down(hit.num_tokens, block) - self.rng.choice([0, 0, block]), 0)
        if local != hit.num_tokens or self.rng.random() < 0.2:
            self.send(ev.Truncate(name, local))
        self.allocate(name, local, self.rng.randint(1, 12))

    def go_on(self) -> None:
        """A request that holds blocks asks for more."""
        self.open_pass()
        name = self.one(holds=True)
        if name is not None:
            self.allocate(name, self.state.requests[name].computed)

    def drain(self, offloads: bool = True) -> None:
        """The lists are drained and the step is dispatched; hand-offs may be left for later."""
        rng = self.rng
        events: list[ev.Event] = [ev.TakeZeroing(), ev.TakeCopies()]
        events += [ev.TakeOffloads()] if offloads and rng.random() < 0.8 else []
        rng.shuffle(events)
        for event in events:
            self.send(event)
        if rng.random() < 0.3:
            self.release()
        self.send(ev.EndStep())

    def run(self) -> None:
        """What is in flight runs, all of it or one step."""
        events: list[ev.Event] = [ev.Execute(), ev.Process()]
        if self.rng.random() < 0.4:
            self.send(self.rng.choice(events))
            return
        while any(self.may(event) for event in events):
            for event in events:
                self.send(event)

    def serve(self) -> None:
        """A whole pass: some go on, some are admitted, the step is dispatched and mostly run."""
        self.open_pass()
        for _ in range(self.rng.randint(1, 4)):
            self.rng.choice([self.admit, self.go_on])()
        self.drain()
        if self.rng.random() < 0.8:
            self.run()

    def release(self) -> None:
        """Endpoints of drained copies are released, up to some step."""
        if self.state.retained:
            newest = self.state.retained[-1][0]
            self.send(ev.ReleaseRetained(Step(max(newest - self.rng.choice([0, 0, 1]), 0))))

    def sample(self) -> None:
        """Tokens are sampled."""
        tokens = tuple(Token(self.rng.randint(0, 1)) for _ in range(self.rng.randint(1, 3)))
        fitting = [n for n in self.state.requests if self.may(ev.Append(n, tokens))]
        if fitting:
            name = self.rng.choice(fitting)
            self.send(ev.Append(name, tokens))
            self.known = [self.state.requests[name].prefix.tokens, *self.known][:6]

    def leave(self) -> None:
        """A request ends, waits again, or its blocks are detached or freed."""
        kinds: list[Callable[[RequestId], ev.Event]] = [
            ev.Finish, ev.Finish, ev.Withdraw, ev.Withdraw, ev.Preempt, ev.Detach, ev.FreeDetached,
            ev.Abort,
        ]  # fmt: skip
        names = {*self.state.requests, *self.state.detached}
        fitting = [make(n) for make in kinds for n in sorted(names) if self.may(make(n))]
        if fitting:
            self.send(self.rng.choice(fitting))

    def load(self) -> None:
        """External tokens arrive, or fail to."""
        for name, request in self.state.requests.items():
            if request.loading and self.rng.random() < 0.7:
                self.send(ev.LoadExternal(name, self.rng.random() < 0.6))
                return

    def look(self) -> None:
        """Look up only, and cut anywhere."""
        name = self.one(holds=False)
        if name is not None:
            look = self.rng.random() < 0.5
            self.send(ev.Lookup(name) if look else ev.LookupForConnector(name))
            self.send(ev.Truncate(name, self.rng.randint(0, 6) * self.config.hash_unit))

    def offload(self) -> None:
        """The connector reads what it was handed, or is done with it."""
        for name in sorted({*self.state.requests, *self.state.detached}):
            self.send(ev.OffloadRead(name))
            if self.rng.random() < 0.3:
                self.send(ev.OffloadDone(name))

    def disturb(self) -> None:
        """Keys of some blocks are dropped, or everything leaves and all keys are."""
        if self.rng.random() < 0.6:
            blocks = sorted(self.state.keys) or [BlockId(1)]
            count = self.rng.randint(1, min(3, len(blocks)))
            self.send(ev.Evict(tuple(self.rng.sample(blocks, count))))
            return
        if self.rng.random() < 0.3:
            self.empty()
        self.send(ev.Reset())

    def empty(self) -> None:
        """Nobody holds anything any more."""
        if self.state.open:
            self.drain()
        while self.may(ev.Execute()) or self.may(ev.Process()):
            self.run()
        for name, request in list(self.state.requests.items()):
            if request.loading:
                self.send(ev.LoadExternal(name, False))
            self.send(ev.Finish(name))
        for name in list(self.state.detached):
            self.send(ev.FreeDetached(name))
        self.release()

    def ask_chunk(self) -> None:
        """The chunk rule."""
        rng = self.rng
        unit = rng.randint(1, 4)
        prompt = rng.randint(1, 60)
        total = prompt + rng.choice([0, 0, 1, 7])
        start, budget, cap = rng.randint(0, total), rng.randint(1, 40), rng.choice([0, 0, 3, 10])
        block = unit * rng.randint(1, 6)
        wanted = rng.randint(0, min(total - start, budget, cap or budget))
        boundary = rng.choice([0, 0, start + 1, start + block, total])
        lengths = start, wanted, prompt, total, block, unit, budget, cap
        self.send(ev.Chunk(*lengths, rng.random() < 0.6, rng.random() < 0.3, boundary))

    def meet(self) -> None:
        """A request hits what another one, granted in the same pass, writes."""
        writer, reader = self.submit(), self.submit()
        self.open_pass()
        for name in (writer, reader):
            if name is not None and name in self.state.requests:
                hit = self.send(ev.Lookup(name))
                if hit is not None:
                    self.allocate(name, hit.num_tokens)

    def move_own_tail(self) -> None:
        """A prompt is computed to its last hash boundary and no further, then goes on.

        What that hands to the connector may wait, while the request leaves or endpoints go.
        """
        name = self.submit()
        if name is None:
            return
        for last in (False, True):
            self.open_pass()
            request = self.state.requests[name]
            hit = self.send(ev.Lookup(name))
            start = hit.num_tokens if hit else request.computed
            tail = align_down(request.num_prompt_tokens, self.config.hash_unit)
            end = tail if tail > start else len(request.prefix)
            self.send(ev.Allocate(name, max(end - start, 0)))
            self.drain(offloads=not last)
            self.run()
        if self.rng.random() < 0.5:
            self.release()
        if self.rng.random() < 0.3:
            self.send(ev.Preempt(name))


def _ask(manager: Any, event: ev.Event) -> ev.Observation:
    arguments = [getattr(event, field) for field in FIELDS[type(event)]]
    try:
        answer: ev.Observation = getattr(manager, ev.EVENT_NAMES[type(event)])(*arguments)
    except ev.Rejected as rejected:
        return ev.Rejection(str(rejected))
    return answer
