"""Moves that whoever drives a cache makes: one admissible event, or a few that belong together.

The state machine and the scenarios are written in these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvspec.spec import events as ev
from kvspec.spec.admit import why_not
from kvspec.spec.state import Request, State
from kvspec.spec.types import Identity, RequestId, Step, Token, align_down

from .capabilities import plainer
from .errors import EventUnsupported
from .session import Session

PLAIN = Identity()


class Driver:
    """Sends events to a session; what the target lacks is skipped and answered with None."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def state(self) -> State:
        """What the judge knows."""
        return self.session.state

    def send(self, event: ev.Event) -> Any:
        """Send an event."""
        return self.send_if_taken(event)

    def send_if_taken(self, event: ev.Event) -> Any:
        """Send an event that belongs to a pass but that a target may do without."""
        if self.session.lacks(event):
            return None
        try:
            return self.session.send(event)
        except EventUnsupported:
            return None

    def may(self, event: ev.Event) -> bool:
        """Whether an event may be sent now."""
        return why_not(self.state, event) is None

    def fitting(self, make: Callable[[RequestId], ev.Event]) -> list[RequestId]:
        """The requests for which this event may be sent now."""
        names = dict.fromkeys([*self.state.requests, *self.state.detached])
        return [name for name in names if self.may(make(name))]

    # --- requests -------------------------------------------------------------------------------

    def submit(self, name: str, tokens: tuple[int, ...], identity: Identity = PLAIN) -> RequestId:
        """A request arrives."""
        request = RequestId(name)
        prompt = tuple(Token(token) for token in tokens)
        self.send(ev.Submit(request, prompt, identity.salt, identity.adapter, identity.media))
        return request

    def append(self, name: str, *tokens: int) -> None:
        """Tokens are sampled."""
        self.send(ev.Append(RequestId(name), tuple(Token(token) for token in tokens)))

    # --- the pass -------------------------------------------------------------------------------

    def begin(self) -> None:
        """A pass begins."""
        self.send(ev.BeginStep())

    def open_pass(self) -> None:
        """Make sure that a pass is open in which something may still be granted."""
        if self.state.open is not None and self.state.open.drained:
            self.close_pass()
        if self.state.open is None:
            if not self.may(ev.BeginStep()):
                self.run()
            self.begin()

    def close_pass(self) -> None:
        """Make sure that no pass is open and another may begin."""
        if self.state.open is not None:
            self.dispatch()
        if not self.may(ev.BeginStep()):
            self.run()

    def lookup(self, name: str) -> Any:
        """The joint hit, or None where the target has no lookup."""
        return self.send(ev.Lookup(RequestId(name)))

    def allocate(self, name: str, new: int, external: int = 0, **more: Any) -> Any:
        """Ask for blocks."""
        return self.send(ev.Allocate(RequestId(name), new, external, **more))

    def dispatch(self, offloads: bool = True) -> Any:
        """Drain the lists and end the step; returns the copies and what was handed off."""
        self.let_loads_arrive()
        self.send_if_taken(ev.TakeZeroing())
        copies = self.send_if_taken(ev.TakeCopies()) if self.may(ev.TakeCopies()) else None
        handed = self.send_if_taken(ev.TakeOffloads()) if offloads else None
        if self.may(ev.EndStep()):
            self.send(ev.EndStep())
        return copies, handed

    def let_loads_arrive(self) -> None:
        """External tokens that the open step computes on arrive."""
        assert self.state.open is not None
        for forward in self.state.open.work.forwards:
            if self.state.requests[forward.request].loading:
                self.send(ev.LoadExternal(forward.request, True))

    def run(self) -> None:
        """Execute and process whatever is in flight."""
        while self.may(ev.Execute()):
            self.send(ev.Execute())
        while self.may(ev.Process()):
            self.send(ev.Process())

    def release(self) -> Any:
        """Release the endpoints of all copies that were drained."""
        newest = self.state.retained[-1][0] if self.state.retained else Step(0)
        return self.send_if_taken(ev.ReleaseRetained(newest))

    def step(self) -> Any:
        """Drain, end, run and release: the rest of a synchronous step."""
        drained = self.dispatch()
        self.run()
        self.release()
        return drained

    def admit(self, name: str, how: str = "rest", lookahead: int = 0, delay: bool = False) -> Any:
        """Look a waiting request up and allocate for it."""
        hit = self.lookup(name)
        start = hit.num_tokens if isinstance(hit, ev.Hit) else 0
        return self.ask(name, start, 0, how, lookahead, delay)

    def go_on(self, name: str, how: str = "rest", lookahead: int = 0, delay: bool = False) -> Any:
        """Allocate for a request that holds blocks."""
        computed = self.state.requests[RequestId(name)].computed
        return self.ask(name, computed, 0, how, lookahead, delay)

    def ask(
        self, name: str, start: int, external: int, how: str, lookahead: int, delay: bool
    ) -> Any:
        """Ask for a chunk that ends where `how` says; an ask that may not be made is left out."""
        request = self.state.requests[RequestId(name)]
        external = max(min(external, len(request.prefix) - 1 - start), 0)
        new = 0 if how == "none" else self._chunk(request, start + external, how)
        event = ev.Allocate(RequestId(name), new, external, lookahead, delay)
        event = plainer(event, self.session.target.capabilities.lacks)
        return self.send(event) if (new or external) and self.may(event) else None

    def _chunk(self, request: Request, start: int, how: str) -> int:
        config, known = self.state.config, len(request.prefix)
        block = max(group.block_size for group in config.groups)
        ends = {
            "rest": known,
            "block": align_down(start, block) + block,
            "tail": align_down(request.num_prompt_tokens, config.hash_unit),
            "one": start + 1,
            "two": start + 2,
            "past": known + 2,
        }
        end = ends[how] if ends[how] > start else start + 1
        drafts = how == "past" and not any(group.recurrent for group in config.groups)
        return min(end, config.max_model_len if drafts else known) - start

    def compute(self, name: str, *hows: str) -> None:
        """Compute a request's known tokens, each chunk by the next of `hows`, the last repeated."""
        request, turn = RequestId(name), 0
        while self.may(ev.BeginStep()) and turn < 16:
            found = self.state.requests[request]
            if found.tables and found.computed >= len(found.prefix):
                return
            self.begin()
            how = hows[min(turn, len(hows) - 1)] if hows else "rest"
            grant = (self.go_on if found.tables else self.admit)(name, how)
            self.step()
            turn = turn + 1 if grant is not None and grant.granted else 16

    # --- the end --------------------------------------------------------------------------------

    def finish(self, *names: str) -> None:
        """Requests are done."""
        for name in names:
            self.send(ev.Finish(RequestId(name)))
