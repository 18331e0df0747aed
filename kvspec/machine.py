"""The Hypothesis state machine over the event language, for the toolkit and for users' own tests.

    from kvspec.machine import cache_machine

    TestMyCache = cache_machine("mine", MyManager).TestCase

Every event of the language is sent by some rule. A rule picks among what may be sent now, by an
index that shrinks towards the first; when nothing may be sent it does nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, Verbosity, reject, settings
from hypothesis import event as label
from hypothesis import seed as set_seed
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kvspec.spec import events as ev
from kvspec.spec.case import Ledger
from kvspec.spec.clauses import Profile
from kvspec.spec.types import (
    BlockId,
    Config,
    Connector,
    Identity,
    RequestId,
    Step,
    Token,
    align_down,
)

from . import generators as gen
from .capabilities import Tally, fitted
from .determinism import independent_of_imports
from .driver import Driver
from .errors import ConfigDeclined
from .memory import StoreKind
from .session import Session
from .targets import PROBE, Factory, Target, find_factory, time_limits

MOST_REQUESTS = 5
"""Live requests at a time: enough for a producer, its readers and someone who evicts."""

PICK = st.integers(0, 5)
"""An index into what may be sent now."""

LENGTHS = st.sampled_from(["rest", "block", "tail", "one", "two", "past"])
"""Where a chunk ends: see `Driver.ask`."""

STATES = st.sampled_from(["tail", "block", "rest", "tail", "one"])
"""As `LENGTHS`, for a chunk whose state others should find."""

LOOKAHEAD = st.sampled_from([0, 0, 0, 1, 3])
RARELY = st.sampled_from([False, False, False, True])

TURNS = st.lists(st.tuples(PICK, LENGTHS, st.booleans()), min_size=1, max_size=4)
"""Who is granted in a pass: (index, where the chunk ends, whether it holds blocks already)."""

CHUNKS = st.sampled_from([("rest",), ("block",), ("tail",), ("block", "tail"), ("tail", "one")])
"""How a prompt is computed: where its chunks end, the last repeated."""

LEAVE: list[Callable[[RequestId], ev.Event]] = [
    ev.Finish,
    ev.Withdraw,
    ev.FreeDetached,
    ev.Preempt,
    ev.Detach,
    ev.Abort,
]


class _TimeIsUp(BaseException):
    """The wall-clock limit of a run was reached, between two examples."""


def _waiting(machine: CacheMachine) -> bool:
    return any(not request.tables for request in machine.driver.state.requests.values())


def _holding(machine: CacheMachine) -> bool:
    return any(request.tables for request in machine.driver.state.requests.values())


def _room(machine: CacheMachine) -> bool:
    return len(machine.driver.state.requests) < MOST_REQUESTS


def _room_for_two(machine: CacheMachine) -> bool:
    return len(machine.driver.state.requests) + 2 <= MOST_REQUESTS


def _connected(machine: CacheMachine) -> bool:
    return machine.driver.state.config.connector is not Connector.NONE


def _may(event: ev.Event) -> Callable[[CacheMachine], bool]:
    return lambda machine: machine.driver.may(event)


def _lacks(name: str, factory: Factory) -> tuple[str, ...]:
    """What a target says it lacks, whatever the configuration."""
    try:
        return Target(name, factory, PROBE).capabilities.lacks
    except ConfigDeclined:
        return ()


class CacheMachine(RuleBasedStateMachine):
    """Drives a target by random events and judges each answer."""

    target_name: ClassVar[str] = "reference"
    factory: ClassVar[Any] = None
    profile: ClassVar[Profile | None] = None
    store: ClassVar[StoreKind] = StoreKind.AUTO
    ledger: ClassVar[Ledger | None] = None
    lacks: ClassVar[tuple[str, ...] | None] = None
    stop_at: ClassVar[float | None] = None
    runs: ClassVar[int] = 0
    sent: ClassVar[int] = 0

    driver: Driver

    def __init__(self) -> None:
        super().__init__()
        self.known: list[tuple[Token, ...]] = []
        self.identities: list[Identity] = []
        self.names = 0
        self.marks_before: Counter[str] = Counter()

    @initialize(config=gen.configs())
    def configure(self, config: Config) -> None:
        """Begin with an empty cache."""
        kind = type(self)
        factory: Factory = kind.factory or find_factory(kind.target_name)
        ledger = Ledger() if kind.ledger is None else kind.ledger
        name, profile = kind.target_name, kind.profile
        if kind.lacks is None:
            kind.lacks = _lacks(name, factory)
        config = fitted(config, kind.lacks)
        try:
            session = Session(
                name, factory, config, profile=profile, ledger=ledger, store=kind.store
            )
        except ConfigDeclined as declined:
            if isinstance(ledger, Tally):
                ledger.miss(config, str(declined))
            reject()
        self.driver = Driver(session)
        self.marks_before = ledger.marks.copy()

    def teardown(self) -> None:
        """Count the run, and tell Hypothesis in domain words what was seen in it."""
        if not hasattr(self, "driver"):
            return
        session, kind = self.driver.session, type(self)
        kind.runs += 1
        kind.sent += len(session.events)
        for mark in session.ledger.end_run(self.marks_before):
            label(mark)
        # After all draws of the example were made, and never in place of a failure.
        if kind.stop_at is not None and time.monotonic() > kind.stop_at and not session.ended:
            raise _TimeIsUp

    def send_to_one(self, pick: int, make: Callable[[RequestId], ev.Event]) -> None:
        """Send an event to one of the requests that may get it."""
        names = self.driver.fitting(make)
        if names:
            self.driver.send(make(names[pick % len(names)]))

    def one(self, pick: int, holds: bool) -> RequestId | None:
        """One of the requests that hold blocks, or that wait."""
        requests = self.driver.state.requests
        names = [name for name, request in requests.items() if bool(request.tables) is holds]
        return names[pick % len(names)] if names else None

    # --- requests -------------------------------------------------------------------------------

    @precondition(_room)
    @rule(data=st.data())
    def submit(self, data: st.DataObject) -> None:
        """A request arrives."""
        self._submit(data)

    def _submit(self, data: st.DataObject) -> RequestId:
        longest = self.driver.state.config.max_model_len
        tokens = data.draw(gen.prompts(self.known, longest), label="tokens")
        identity = data.draw(gen.identities(self.identities, len(tokens)), label="identity")
        self.names += 1
        if identity != Identity():
            self.identities = [identity, *self.identities][:4]
        self.known = [tokens, *self.known][:6]
        return self._arrive(tokens, identity)

    def _arrive(self, tokens: tuple[Token, ...], identity: Identity) -> RequestId:
        """Submit under the next name; plainly where the target does not take the identity."""
        name = self.driver.submit(f"r{self.names}", tokens, identity)
        if name not in self.driver.state.requests:
            self.driver.submit(name, tokens)
        return name

    @rule(pick=PICK, tokens=st.lists(gen.TOKENS, min_size=1, max_size=3).map(tuple))
    def append(self, pick: int, tokens: tuple[Token, ...]) -> None:
        """Tokens are sampled."""
        names = self.driver.fitting(lambda name: ev.Append(name, tokens))
        if names:
            name = names[pick % len(names)]
            self.driver.append(name, *tokens)
            self.known = [self.driver.state.requests[name].prefix.tokens, *self.known][:6]

    # --- the pass, event by event ---------------------------------------------------------------

    @precondition(_may(ev.BeginStep()))
    @rule()
    def begin_step(self) -> None:
        """A pass begins."""
        self.driver.begin()

    @precondition(_waiting)
    @rule(pick=PICK, how=LENGTHS, lookahead=LOOKAHEAD, delay=RARELY)
    def admit(self, pick: int, how: str, lookahead: int, delay: bool) -> None:
        """A waiting request is looked up and asks for its first blocks."""
        self.driver.open_pass()
        name = self.one(pick, holds=False)
        if name is not None and self.driver.may(ev.Lookup(name)):
            self.driver.admit(name, how, lookahead, delay)

    @precondition(_holding)
    @rule(pick=PICK, how=LENGTHS, lookahead=LOOKAHEAD, delay=RARELY)
    def go_on(self, pick: int, how: str, lookahead: int, delay: bool) -> None:
        """A request that holds blocks asks for more."""
        self.driver.open_pass()
        name = self.one(pick, holds=True)
        if name is not None:
            self.driver.go_on(name, how, lookahead, delay)

    @precondition(lambda self: _waiting(self) and _connected(self))
    @rule(
        pick=PICK,
        cut=st.integers(0, 3),
        external=st.integers(1, 12),
        how=st.sampled_from(["none", "none", "rest", "block", "tail"]),
        loses=RARELY,
        fails=st.booleans(),
    )
    def admit_with_connector(
        self, pick: int, cut: int, external: int, how: str, loses: bool, fails: bool
    ) -> None:
        """A waiting request gets external tokens behind a hit that is cut to block ends.

        States may be lost before, so that hits diverge; and the load may fail at once.
        """
        self.driver.open_pass()
        name = self.one(pick, holds=False)
        if name is None:
            return
        if loses:
            self._lose_states()
        self._load(name, cut, external, how)
        if fails and self.driver.may(ev.LoadExternal(name, False)):
            self.driver.send(ev.LoadExternal(name, False))

    def _lose_states(self) -> None:
        """Every recurrent block loses its key."""
        state = self.driver.state
        groups = state.config.groups
        states = [b for b, entry in state.keys.items() if groups[entry.group].recurrent]
        self.driver.send(ev.Evict(tuple(sorted(states))))

    def _load(self, name: RequestId, cut: int, external: int, how: str) -> None:
        hit = self.driver.send(ev.LookupForConnector(name))
        if not isinstance(hit, ev.ConnectorHit):
            return
        block = self.driver.state.config.scheduler_block
        local = align_down(hit.num_tokens, block)
        local = max(local - cut * block, 0) if cut > 1 else local
        if local != hit.num_tokens:
            view = self.driver.send(ev.Truncate(name, local))
            if not isinstance(view, ev.View):
                return
        self.driver.ask(name, local, external, how, 0, False)

    @precondition(_waiting)
    @rule(pick=PICK, how=st.sampled_from(["connector", "cut", "nothing", "blind", "stale"]))
    def look(self, pick: int, how: str) -> None:
        """Look up only, cut anywhere, ask for nothing; or ask without a lookup directly before."""
        self.driver.open_pass()
        name = self.one(pick, holds=False)
        if name is None:
            return
        if how == "nothing":
            if self.driver.may(ev.Allocate(name, 0)):
                self.driver.allocate(name, 0)
        elif how in ("blind", "stale"):
            if how == "stale":
                self.driver.lookup(name)
                self.driver.send(ev.Chunk(0, 1, 1, 1, 1, 1, 1))
            self.driver.ask(name, 0, 0, "rest", 0, False)
        elif how == "connector":
            self.driver.send(ev.LookupForConnector(name))
        elif self.driver.lookup(name) is not None:
            self.driver.send(ev.Truncate(name, pick * self.driver.state.config.hash_unit))

    @precondition(lambda self: self.driver.state.open is not None)
    @rule(offloads=RARELY, early=st.booleans())
    def end_step(self, offloads: bool, early: bool) -> None:
        """The lists are drained, endpoints perhaps released early, and the step is dispatched."""
        self._end_step(offloads, early)

    def _end_step(self, offloads: bool, early: bool) -> None:
        self.driver.let_loads_arrive()
        self.driver.send(ev.TakeZeroing())
        if self.driver.may(ev.TakeCopies()):
            self.driver.send(ev.TakeCopies())
        if early:
            self.driver.release()
        if not offloads:
            self.driver.send(ev.TakeOffloads())
        if self.driver.may(ev.EndStep()):
            self.driver.send(ev.EndStep())

    @precondition(lambda self: self.driver.state.processed < self.driver.state.dispatched)
    @rule(how=st.sampled_from(["all", "execute", "process"]))
    def run_steps(self, how: str) -> None:
        """The oldest dispatched step runs, the oldest executed one is processed, or all are."""
        if how == "all":
            self.driver.run()
        elif how == "execute" and self.driver.may(ev.Execute()):
            self.driver.send(ev.Execute())
        elif self.driver.may(ev.Process()):
            self.driver.send(ev.Process())

    @precondition(lambda self: bool(self.driver.state.retained))
    @rule(back=st.integers(0, 2))
    def release_retained(self, back: int) -> None:
        """Endpoints of drained copies are released."""
        newest = self.driver.state.retained[-1][0]
        self.driver.send(ev.ReleaseRetained(Step(max(newest - back, 0))))

    # --- whole conversations --------------------------------------------------------------------
    # Hypothesis switches rules off at random, example by example; what a run cannot do without
    # stands here twice.

    @rule(turns=TURNS, runs=st.sampled_from([True, True, False]))
    def serve(self, turns: list[tuple[int, str, bool]], runs: bool) -> None:
        """A whole pass: some requests go on, some are admitted, the step is dispatched."""
        self._serve(turns, runs)

    @rule(turns=TURNS, runs=st.sampled_from([True, True, False]))
    def serve_again(self, turns: list[tuple[int, str, bool]], runs: bool) -> None:
        """As `serve`."""
        self._serve(turns, runs)

    def _serve(self, turns: list[tuple[int, str, bool]], runs: bool) -> None:
        self.driver.open_pass()
        for pick, how, goes_on in turns:
            name = self.one(pick, holds=goes_on)
            if name is not None and goes_on:
                self.driver.go_on(name, how)
            elif name is not None:
                self.driver.admit(name, how)
        self.driver.dispatch(offloads=runs)
        if runs:
            self.driver.run()

    @precondition(_room)
    @rule(data=st.data(), hows=CHUNKS, sampled=st.integers(0, 2), ends=st.booleans())
    def converse(
        self, data: st.DataObject, hows: tuple[str, ...], sampled: int, ends: bool
    ) -> None:
        """A prompt is computed, tokens are sampled, and the request may end."""
        self._converse(data, hows, sampled, ends)

    @precondition(_room)
    @rule(data=st.data(), hows=CHUNKS, sampled=st.integers(0, 2), ends=st.booleans())
    def converse_again(
        self, data: st.DataObject, hows: tuple[str, ...], sampled: int, ends: bool
    ) -> None:
        """As `converse`."""
        self._converse(data, hows, sampled, ends)

    def _converse(
        self, data: st.DataObject, hows: tuple[str, ...], sampled: int, ends: bool
    ) -> None:
        name = self._submit(data)
        self.driver.close_pass()
        self.driver.compute(name, *hows)
        tokens = (Token(0),) * sampled
        if sampled and self.driver.may(ev.Append(name, tokens)):
            self.driver.append(name, *tokens)
            self.known = [self.driver.state.requests[name].prefix.tokens, *self.known][:6]
        if ends and self.driver.may(ev.Finish(name)):
            self.driver.finish(name)

    @precondition(_room_for_two)
    @rule(
        data=st.data(),
        cut=st.integers(0, 2),
        owner=st.booleans(),
        hows=st.tuples(STATES, LENGTHS),
        ends=st.booleans(),
    )
    def meet(
        self, data: st.DataObject, cut: int, owner: bool, hows: tuple[str, str], ends: bool
    ) -> None:
        """Two requests with a prefix in common are granted in one pass, the writer first."""
        self._meet(data, cut, owner, hows)
        if ends and self.driver.state.open is not None:
            self._end_step(offloads=False, early=True)

    @precondition(_room_for_two)
    @rule(
        data=st.data(), cut=st.integers(0, 2), owner=st.booleans(), hows=st.tuples(STATES, LENGTHS)
    )
    def meet_again(self, data: st.DataObject, cut: int, owner: bool, hows: tuple[str, str]) -> None:
        """As `meet`."""
        self._meet(data, cut, owner, hows)

    def _meet(self, data: st.DataObject, cut: int, owner: bool, hows: tuple[str, str]) -> None:
        writer = self._submit(data)
        prefix = self.driver.state.requests[writer].prefix
        self.driver.close_pass()
        if owner:
            self.driver.compute(writer, "tail")
            if self.driver.may(ev.Append(writer, (Token(0),))):
                self.driver.append(writer, 0)
        tail = data.draw(st.lists(gen.TOKENS, min_size=1, max_size=3), label="tail")
        longest = self.driver.state.config.max_model_len
        shared = prefix.tokens[: max(len(prefix) - cut, 0)]
        self.names += 1
        tokens = (*shared, *tail)[:longest]
        media = (m for m in prefix.identity.media if m.start + m.length <= len(tokens))
        identity = replace(prefix.identity, media=tuple(media))
        reader = self._arrive(tokens, identity)
        self.driver.open_pass()
        if self.driver.state.requests[writer].tables:
            self.driver.go_on(writer, hows[0])
        else:
            self.driver.admit(writer, hows[0])
        self.driver.admit(reader, hows[1])

    # --- how requests leave ---------------------------------------------------------------------

    @precondition(lambda self: bool(self.driver.state.requests or self.driver.state.detached))
    @rule(pick=st.integers(0, 29))
    def leave(self, pick: int) -> None:
        """A request ends, waits again, is withdrawn, or its blocks are detached or freed."""
        fitting = [make(name) for make in LEAVE for name in self.driver.fitting(make)]
        if fitting:
            self.driver.send(fitting[pick % len(fitting)])

    # --- the connector, the prefix cache --------------------------------------------------------

    @precondition(lambda self: any(r.loading for r in self.driver.state.requests.values()))
    @rule(pick=PICK, ok=st.booleans())
    def load_external(self, pick: int, ok: bool) -> None:
        """External tokens arrive, or fail to."""
        self.send_to_one(pick, lambda name: ev.LoadExternal(name, ok))

    @precondition(_connected)
    @rule(pick=PICK, done=RARELY)
    def offload(self, pick: int, done: bool) -> None:
        """The connector reads what it was handed, or is done with it."""
        self.send_to_one(pick, ev.OffloadDone if done else ev.OffloadRead)

    @rule(data=st.data(), how=st.sampled_from(["evict", "reset", "drain", "chunk"]))
    def disturb(self, data: st.DataObject, how: str) -> None:
        """Keys of some blocks are dropped, or of all; or the chunk rule is asked."""
        if how == "chunk":
            self.driver.send(data.draw(gen.chunk_questions(), label="chunk"))
        elif how == "evict":
            keyed = st.sampled_from(sorted(self.driver.state.keys) or [BlockId(1)])
            picks = data.draw(st.lists(keyed, min_size=1, max_size=3, unique=True), label="blocks")
            self.driver.send(ev.Evict(tuple(picks)))
        else:
            for name in list(self.driver.state.requests) if how == "drain" else ():
                if self.driver.may(ev.Finish(name)):
                    self.driver.finish(name)
            self.driver.send(ev.Reset())
        self.driver.send(ev.Snapshot())


def cache_machine(
    name: str,
    factory: Factory | None = None,
    *,
    profile: Profile | None = None,
    ledger: Ledger | None = None,
    store: StoreKind = StoreKind.AUTO,
    seconds: float | None = None,
) -> type[CacheMachine]:
    """A machine class of its own for a target; its `TestCase` runs under pytest and unittest."""

    class Made(CacheMachine):
        runs = 0
        sent = 0

    Made.target_name, Made.profile, Made.ledger, Made.store = name, profile, ledger, store
    Made.factory = staticmethod(factory) if factory else None
    Made.stop_at = None if seconds is None else time.monotonic() + seconds
    return Made


@dataclass(frozen=True, slots=True)
class MachineRun:
    """How much a run of the machine did."""

    examples: int
    events: int
    cut_short: bool = False
    """Whether the time limit ended it."""


def run_machine(
    name: str,
    factory: Factory,
    *,
    profile: Profile | None = None,
    ledger: Ledger | None = None,
    store: StoreKind = StoreKind.AUTO,
    examples: int = 100,
    steps: int = 40,
    seed: int = 0,
    max_seconds: float | None = None,
) -> MachineRun:
    """Run the machine; the same seed gives the same run. Raises `ClauseBroken`.

    Its events are as they were found: `kvspec.shrink` is quicker on them than Hypothesis is on the
    draws behind them.
    """
    machine = cache_machine(
        name, factory, profile=profile, ledger=ledger, store=store, seconds=max_seconds
    )
    plan = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    cut_short = False
    try:
        with suppress(Unsatisfiable), independent_of_imports(), time_limits():
            run_state_machine_as_test(set_seed(seed)(machine), settings=plan)
    except _TimeIsUp:
        cut_short = True
    return MachineRun(machine.runs, machine.sent, cut_short)
