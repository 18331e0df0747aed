"""The one loop: feed an event, collect the observation, ask the judge, compare, record."""

from __future__ import annotations

from typing import NoReturn

from kvspec.kernels.layout import MoveError
from kvspec.reference.worker import changed_blocks, render
from kvspec.spec import events as ev
from kvspec.spec.admit import admit, readable_pins
from kvspec.spec.case import Ledger, Violation
from kvspec.spec.clauses import DATA_BYTES, DATA_KERNEL, LIVE_ANSWER, LIVE_EXACT, Profile
from kvspec.spec.content import POISON, Rows
from kvspec.spec.judge import initial_state, judge_admitted
from kvspec.spec.judge_step import external_slots
from kvspec.spec.state import State
from kvspec.spec.types import BlockId, Config, GroupId

from .capabilities import Tally
from .errors import ClauseBroken, EventUnsupported, TargetUnusable
from .memory import Memory, StoreKind, fits
from .targets import Factory, Target, TargetFault, find_factory

SNAPSHOT = ev.Snapshot()


class Session:
    """A target, driven by events and judged after each.

    `profile` is the highest the target is held to; by default what it shows allows. `exact`
    compares every observation with the reference's. `snapshots` asks for a snapshot after every
    event. `moves_bytes` runs the plain worker beside the judge and compares memory with content,
    where the pool is small enough for that; `store` says what else moves the same bytes.
    `judged` off only feeds events and keeps no trace; `keeps_answers` off keeps the events of the
    trace alone, for long runs. Events that the target lacks are skipped and counted, in the
    ledger too where it is a `Tally`.

    Raises `InvalidInput` for an event that may not be sent, `ClauseBroken`, `TargetUnusable`, and
    `EventUnsupported` for an event that the target cannot do: it counts as not sent.
    """

    def __init__(
        self,
        name: str,
        factory: Factory,
        config: Config,
        *,
        profile: Profile | None = None,
        ledger: Ledger | None = None,
        judged: bool = True,
        snapshots: bool = True,
        moves_bytes: bool = True,
        store: StoreKind = StoreKind.AUTO,
        keeps_answers: bool = True,
    ) -> None:
        self.config = config
        self.target = Target(name, factory, config)
        self.profile = profile or self.target.profile
        if self.profile.covers(Profile.ACCOUNTING) and not self.target.profile.covers(
            Profile.ACCOUNTING
        ):
            raise TargetUnusable(
                f"target {name}: profile {self.profile.value} needs a target that shows "
                f"{', '.join(ev.SHOWABLE)}; it shows {list(self.target.capabilities.shows)}"
            )
        self.state: State = initial_state(config)
        self.ledger = Ledger() if ledger is None else ledger
        if isinstance(self.ledger, Tally):
            self.ledger.configured(config, self.target.capabilities)
        self.judged = judged
        self.keeps_answers = keeps_answers
        self.snapshots = snapshots and bool(self.target.capabilities.shows)
        self.memory = Memory(config, store) if moves_bytes and fits(config) else None
        exact = self.profile is Profile.EXACT
        self.peer = Target("reference", find_factory("reference"), config) if exact else None
        self.events: list[ev.Event] = []
        self.observations: list[ev.Observation] = []
        self.skipped: dict[str, int] = {}
        self.ended = False
        """Whether the last event raised, so that nothing more can be told of this session."""

    def send(self, event: ev.Event) -> ev.Observation:
        """Feed one event; the observation is returned when no clause is broken."""
        self.ended = True
        try:
            answer = self._feed(event)
        except EventUnsupported as unsupported:
            self.ended = False
            self._skip(event, str(unsupported))
            if self.judged:
                self.events.pop()
            raise
        if self.snapshots and self.judged and not isinstance(event, ev.Snapshot):
            self._feed(SNAPSHOT)
        self.ended = False
        return answer

    def lacks(self, event: ev.Event) -> bool:
        """Whether the target does not take this event; if so it is counted as skipped."""
        missing = self.target.lacks(event)
        if missing:
            self._skip(event, "the target lacks it", missing)
        return bool(missing)

    def _skip(self, event: ev.Event, reason: str, missing: str = "") -> None:
        name = ev.EVENT_NAMES[type(event)]
        self.skipped[name] = self.skipped.get(name, 0) + 1
        if isinstance(self.ledger, Tally):
            self.ledger.miss(event, reason, missing)

    def _feed(self, event: ev.Event) -> ev.Observation:
        if self.judged:
            admit(self.state, event)
        if self.judged and event is not SNAPSHOT:
            self.events.append(event)
        try:
            answer = self.target.ask(event)
        except TargetFault as fault:
            self._break(Violation(LIVE_ANSWER, str(fault), "an answer"))
        if isinstance(self.ledger, Tally):
            self.ledger.count(event)
        if self.judged:
            if self.keeps_answers and event is not SNAPSHOT:
                self.observations.append(answer)
            self._judge(event, answer)
        if self.peer is not None:
            expected = self.peer.ask(event)
            self.ledger.exercised[LIVE_EXACT.id] += 1
            rejected = isinstance(answer, ev.Rejection) and isinstance(expected, ev.Rejection)
            if answer != expected and not rejected:
                name = ev.EVENT_NAMES[type(event)]
                self._break(Violation(LIVE_EXACT, answer, expected, name))
        return answer

    def _judge(self, event: ev.Event, answer: ev.Observation) -> None:
        self._check_groups(answer)
        before = self.state
        verdict = judge_admitted(before, event, answer, self.profile, self.ledger)
        if isinstance(verdict, Violation):
            self._break(verdict)
        self.state = verdict
        if self.memory is not None:
            try:
                self._move_bytes(self.memory, before, event)
            except MoveError as error:
                self._break(Violation(DATA_KERNEL, str(error), "lists that can be carried out"))

    def _check_groups(self, answer: ev.Observation) -> None:
        """Every list per group has one entry a group."""
        for field in ("blocks", "new_blocks", "table"):
            lists = getattr(answer, field, None)
            grouped = isinstance(answer, ev.Hit | ev.ConnectorHit | ev.View | ev.Grant)
            if grouped and lists is not None and len(lists) != len(self.config.groups):
                raise TargetUnusable(
                    f"target {self.target.name}: {field} of {type(answer).__name__} has "
                    f"{len(lists)} lists, there are {len(self.config.groups)} groups"
                )

    def _break(self, violation: Violation) -> NoReturn:
        events = (self.config, *self.events)
        raise ClauseBroken(violation, events, tuple(self.observations))

    # --- bytes ----------------------------------------------------------------------------------

    def _move_bytes(self, memory: Memory, before: State, event: ev.Event) -> None:
        """Let the worker do what the event makes it do, and compare memory with content."""
        worker = memory.worker
        if isinstance(event, ev.Execute):
            number = before.executed + 1
            work = next(w for w in before.in_flight if w.number == number)
            worker.execute(work)
            for block, group in changed_blocks(self.config, work).items():
                self._compare(memory, block, self._group_of(block) if group is None else group)
            self._compare_stores(memory)
        elif isinstance(event, ev.LoadExternal) and event.ok:
            request = before.requests[event.request]
            for g, slot, block in external_slots(self.config, request):
                start = slot * self.config.groups[g].block_size
                end = min(start + self.config.groups[g].block_size, request.computed)
                end = request.computed if self.config.groups[g].recurrent else end
                worker.load(block, g, request.prefix, start, end)
                self._compare(memory, block, g)
            self._compare_stores(memory)
        elif isinstance(event, ev.Allocate | ev.Reset):
            contents = self.state.contents
            if contents is not before.contents:
                fresh = [b for b, c in contents.items() if c is POISON]
                worker.poison(tuple(b for b in fresh if before.contents.get(b) is not POISON))
        elif isinstance(event, ev.OffloadRead):
            for pin in readable_pins(before, event.request):
                self._compare(memory, pin.block, pin.group)

    def _group_of(self, block: BlockId) -> GroupId | None:
        """The group that a block belongs to: by whoever holds it, else by its key."""
        for request in self.state.requests.values():
            for g, table in enumerate(request.tables):
                if block in table:
                    return GroupId(g)
        entry = self.state.keys.get(block)
        return entry.group if entry else None

    def _compare_stores(self, memory: Memory) -> None:
        """All bytes that the kernels left, guards too, are those of the plain worker."""
        if memory.second is not None:
            self.ledger.exercised[DATA_KERNEL.id] += 1
            if difference := memory.difference():
                self._break(Violation(DATA_KERNEL, difference, "the plain worker's bytes"))

    def _compare(self, memory: Memory, block: BlockId, group: GroupId | None) -> None:
        """The block's bytes are those of its content."""
        content = self.state.content(block)
        if group is None and isinstance(content, Rows) and content.runs:
            return  # a copy whose request was withdrawn: nobody says which group's it is
        size = self.config.groups[group or 0].block_size
        expected = render(content, memory.page, size)
        observed = memory.read(block, 0, len(expected))
        self.ledger.exercised[DATA_BYTES.id] += 1
        if observed != expected:
            at = next(i for i, (a, b) in enumerate(zip(observed, expected, strict=True)) if a != b)
            where = f"block {block}, byte {at}"
            shown, allowed = observed[at : at + 16].hex(), expected[at : at + 16].hex()
            self._break(Violation(DATA_BYTES, shown, allowed, where))
