"""Which events a state offers: all that the driver may send, from a finite list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvspec.spec import events as ev
from kvspec.spec.admit import why_not
from kvspec.spec.content import Rows
from kvspec.spec.state import Request, State
from kvspec.spec.types import Connector, RequestId, Token

from .worlds import ALPHABET, World

NAMES = tuple(map(RequestId, "abcdefgh"))
"""What requests are called; which of them has which name makes no difference."""

PASS: tuple[ev.Event, ...] = (
    ev.BeginStep(),
    ev.TakeZeroing(),
    ev.TakeCopies(),
    ev.TakeOffloads(),
    ev.EndStep(),
    ev.Execute(),
    ev.Process(),
)
PROMPT: tuple[ev.Event, ...] = (ev.BeginStep(), ev.TakeZeroing())
"""As `PASS`, where the first drain is followed by the rest of the step."""

ENDS = (ev.Abort, ev.Finish, ev.Preempt, ev.Withdraw)
"""How requests leave; a prompt driver calls every end a finish."""


@dataclass(frozen=True, slots=True)
class Menu:
    """The events of a world; without `plain`, one of those that differ by a renaming."""

    world: World
    plain: bool = False

    def events(self, state: State) -> Iterator[ev.Event]:
        """Every event of the menu that may be sent now, always in the same order."""
        for event in self._all(state):
            if why_not(state, event) is None:
                yield event

    @property
    def _connected(self) -> bool:
        return self.world.config.connector is not Connector.NONE

    def _all(self, state: State) -> Iterator[ev.Event]:
        if self.world.prompt and (rest := _rest_of_the_step(self.world, state)):
            yield from rest
            return
        branches = None if self.plain else _branches(state)
        yield from self._submits(state, branches)
        yield from PROMPT if self.world.prompt else PASS
        newest = state.open.work.number if state.open else state.dispatched
        for fence in dict.fromkeys((*(step for step, _ in state.retained), newest)):
            yield ev.ReleaseRetained(fence)
        for name, request in state.requests.items():
            yield from self._about(state, name, request)
            for token in _next_tokens(branches, request.prefix.tokens):
                yield ev.Append(name, (token,))
        for name in state.detached:
            yield ev.FreeDetached(name)
        for name in dict.fromkeys((*state.requests, *state.detached)):
            yield ev.OffloadRead(name)
            yield ev.OffloadDone(name)
        for block in state.keys if self.world.evicts else ():
            yield ev.Evict((block,))
        yield ev.Reset()

    def _submits(self, state: State, branches: Branches) -> Iterator[ev.Event]:
        """A request may come under each name that is free; names never used are alike."""
        if len(state.requests) >= self.world.requests:
            return
        free = [name for name in NAMES[: self.world.requests] if name not in state.requests]
        remembered = remembered_names(state)
        used = [name for name in free if name in remembered]
        fresh = [name for name in free if name not in used]
        for name in free if self.plain else used + fresh[:1]:
            for prompt in self.world.prompts:
                if all(
                    prompt[at] in _next_tokens(branches, prompt[:at]) for at in range(len(prompt))
                ):
                    yield ev.Submit(name, prompt)

    def _about(self, state: State, name: RequestId, request: Request) -> Iterator[ev.Event]:
        if not request.tables:
            yield ev.Lookup(name)
            if self._connected:
                yield ev.LookupForConnector(name)
        last = state.last_lookup
        if last is not None and last.request == name:
            for length in range((last.whole or last).num_tokens + 2):
                yield ev.Truncate(name, length)
        if state.open is not None and not state.open.drained:
            yield from self._asks(state, name, request)
        for kind in ENDS[self.world.prompt :]:
            yield kind(name)
        if self.world.detaches and name not in state.detached:
            yield ev.Detach(name)
        if request.loading:
            yield ev.LoadExternal(name, True)
            yield ev.LoadExternal(name, False)

    def _asks(self, state: State, name: RequestId, request: Request) -> Iterator[ev.Event]:
        last, start = state.last_lookup, request.computed
        if not request.tables:
            start = last.num_tokens if last is not None and last.request == name else 0
        left = len(request.prefix) - start
        for new in range(left + 1):
            yield ev.Allocate(name, new)
            if self.world.delays and new:
                yield ev.Allocate(name, new, delay_caching=True)
        if self._connected and not request.tables:
            for external in range(1, left):
                for new in range(left - external + 1):
                    yield ev.Allocate(name, new, external)


def _rest_of_the_step(world: World, state: State) -> tuple[ev.Event, ...]:
    """What a prompt driver may send next once it has begun to drain the step's lists."""
    if state.open is not None and state.open.drained:
        if not state.open.copies_taken:
            return (ev.TakeCopies(),)
        offered = state.offers or state.dead_offers
        return (ev.TakeOffloads(), ev.EndStep()) if offered else (ev.EndStep(),)
    if state.executed < state.dispatched:
        return (ev.Execute(),)
    if state.processed < state.dispatched:
        return (ev.Process(),)
    overdue = state.retained and not world.holds_on
    return (ev.ReleaseRetained(state.dispatched),) if overdue else ()


def remembered_names(state: State) -> set[RequestId]:
    """The names that mean something in a state, whether or not their requests have ended."""
    withdrawn = state.open.withdrawn if state.open else ()
    return {*state.requests, *state.detached, *state.dead_offers, *withdrawn}


Branches = set[tuple[Token, ...]] | None
"""Every prefix that a state knows of; None where each token counts."""


def _branches(state: State) -> Branches:
    found: set[tuple[Token, ...]] = set()
    for request in state.requests.values():
        found.add(request.prefix.tokens)
    for entry in state.keys.values():
        found.add(entry.prefix.tokens[: entry.length])
    for content in state.contents.values():
        if isinstance(content, Rows):
            found |= {run.prefix.tokens[: run.end] for run in content.runs if run.prefix}
        else:
            found.add(content.prefix.tokens[: content.length])
    for work in state.in_flight:
        found |= {forward.prefix.tokens for forward in work.forwards}
    return {tokens[:end] for tokens in found for end in range(len(tokens) + 1)}


def _next_tokens(branches: Branches, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """How a prefix may go on: where the state knows of no way to go on, all ways are alike."""
    if branches is None or any((*tokens, token) in branches for token in ALPHABET):
        return ALPHABET
    return ALPHABET[:1]
