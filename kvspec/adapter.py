"""Adapters: the page of code between kvspec and a cache manager in the same process.

    class MyAdapter(Adapter):
        name, lacks = "mine", ("salt", "recurrent_groups")

        def open(self, config): ...
        def submit(self, request, tokens, salt=None, adapter=None, media=()): ...
        def lookup(self, request): ...
        def allocate(self, request, num_new_tokens, ...): ...
        def finish(self, request): ...

An event whose method is not written is one that the adapter lacks: it is skipped, and reports say
so. See docs/adapter.md, which builds one step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, runtime_checkable

from kvspec.spec import events as ev
from kvspec.spec.types import Adapter as LoraAdapter
from kvspec.spec.types import BlockId, Config, Media, RequestId, Step, Token

from .capabilities import EVENTS, lacking

__all__ = ["Adapter", "Manager", "Rejected", "Unsupported"]

Rejected = ev.Rejected
"""Raised for an event that the rules call an error, such as a cut inside a block."""


class Unsupported(Exception):
    """Raised by a target for an event that its engine cannot do; it changes nothing.

    The event counts as not sent: it is skipped and reported with the reason, and never judged.
    Raised from `configure` it declines the configuration.
    """


@runtime_checkable
class Manager(Protocol):
    """What every target has: these events cannot be lacked, any other can.

    Each method is named and called as the event in `kvspec.spec.events`, and returns the
    observation that `ANSWERS` says, or raises `Rejected` or `Unsupported`.
    """

    def configure(self, config: Config) -> ev.Capabilities:
        """Start with an empty cache, whatever there was before."""

    def submit(
        self,
        request: RequestId,
        tokens: tuple[Token, ...],
        salt: str | None = None,
        adapter: LoraAdapter | None = None,
        media: tuple[Media, ...] = (),
    ) -> ev.Done:
        """A request arrives with its prompt."""

    def allocate(
        self,
        request: RequestId,
        num_new_tokens: int,
        num_external_tokens: int = 0,
        num_lookahead_tokens: int = 0,
        delay_caching: bool = False,
    ) -> ev.Grant:
        """Grant the blocks that more tokens need, or refuse and change nothing."""

    def end_step(self) -> ev.Dispatched:
        """The pass ends; what was granted is dispatched, computed tokens advance."""

    def finish(self, request: RequestId) -> ev.Done:
        """A request is done."""


def _missing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method of the base class: an adapter that does not write its own lacks the event."""
    method.is_missing = True  # type: ignore[attr-defined]
    return method


class Adapter:
    """A target to derive from: one method per event, each a few lines around the engine.

    `open`, `submit`, `allocate` and `finish` have to be written. `shows` names the books that
    `snapshot` returns; `lacks` the features (see `kvspec.capabilities`) that the engine does not
    have. A method whose answer is `Done` may return None.
    """

    name: ClassVar[str] = ""
    version: ClassVar[str] = ""
    shows: ClassVar[tuple[str, ...]] = ()
    lacks: ClassVar[tuple[str, ...]] = ()

    config: Config
    step: int
    """The number of the last dispatched step."""

    def open(self, config: Config) -> None:
        """Make a fresh engine for this configuration; raise `Unsupported` to decline it."""
        raise NotImplementedError(f"{type(self).__name__} has no method open(config): write it")

    def configure(self, config: Config) -> ev.Capabilities:
        """Open a fresh engine, unless the configuration needs what `lacks` names."""
        missing = lacking(config, self.lacks)
        if missing:
            raise Unsupported(f"lacks {missing}")
        self.config, self.step = config, 0
        self.open(config)
        name = self.name or type(self).__name__
        return ev.Capabilities(name, self.version, self.shows, (*self.lacks, *self._unwritten()))

    @classmethod
    def _unwritten(cls) -> list[str]:
        events = [name for name in EVENTS if hasattr(getattr(cls, name, None), "is_missing")]
        return [name for name in events if name not in cls.lacks]

    # --- requests -------------------------------------------------------------------------------

    def submit(
        self,
        request: RequestId,
        tokens: tuple[Token, ...],
        salt: str | None = None,
        adapter: LoraAdapter | None = None,
        media: tuple[Media, ...] = (),
    ) -> ev.Done | None:
        """A request arrives with its prompt."""
        raise NotImplementedError(f"{type(self).__name__} has no method submit: write it")

    @_missing
    def append(self, request: RequestId, tokens: tuple[Token, ...]) -> ev.Done | None:
        """Sampled tokens become known."""
        raise Unsupported("append is not written")

    def finish(self, request: RequestId) -> ev.Done | None:
        """A request is done: its blocks go back, tails first."""
        raise NotImplementedError(f"{type(self).__name__} has no method finish: write it")

    def abort(self, request: RequestId) -> ev.Done | None:
        """To a cache the same as `finish`."""
        return self.finish(request)

    @_missing
    def preempt(self, request: RequestId) -> ev.Done | None:
        """Take a request's blocks back; it waits again with nothing computed."""
        raise Unsupported("preempt is not written")

    @_missing
    def withdraw(self, request: RequestId) -> ev.Done | None:
        """As `preempt`, of a chunk that was granted in this step and will never run."""
        raise Unsupported("withdraw is not written")

    @_missing
    def detach(self, request: RequestId) -> ev.Detached:
        """Take a request's blocks off it without freeing them."""
        raise Unsupported("detach is not written")

    @_missing
    def free_detached(self, request: RequestId) -> ev.Done | None:
        """Free what was detached from a request."""
        raise Unsupported("free_detached is not written")

    # --- hits and grants ------------------------------------------------------------------------

    @_missing
    def lookup(self, request: RequestId) -> ev.Hit:
        """The joint hit of a request that holds no blocks; it changes nothing."""
        raise Unsupported("lookup is not written")

    @_missing
    def lookup_for_connector(self, request: RequestId) -> ev.ConnectorHit:
        """The hit as a connector that may extend it is told."""
        raise Unsupported("lookup_for_connector is not written")

    @_missing
    def truncate(self, request: RequestId, num_tokens: int) -> ev.View:
        """A view of the last lookup at `num_tokens`; `Rejected` where it cannot be cut."""
        raise Unsupported("truncate is not written")

    def allocate(
        self,
        request: RequestId,
        num_new_tokens: int,
        num_external_tokens: int = 0,
        num_lookahead_tokens: int = 0,
        delay_caching: bool = False,
    ) -> ev.Grant:
        """Grant the blocks that more tokens need, or refuse and change nothing."""
        raise NotImplementedError(f"{type(self).__name__} has no method allocate: write it")

    # --- the step -------------------------------------------------------------------------------

    def begin_step(self) -> ev.Done | None:
        """A scheduling pass begins."""
        return ev.Done()

    @_missing
    def take_zeroing(self) -> ev.Zeroing:
        """Drain the list of blocks to zero in this step."""
        raise Unsupported("take_zeroing is not written")

    @_missing
    def take_copies(self) -> ev.Copies:
        """Drain the queue of copies of this step."""
        raise Unsupported("take_copies is not written")

    @_missing
    def take_offloads(self) -> ev.Offloads:
        """Drain the hand-offs to the connector."""
        raise Unsupported("take_offloads is not written")

    def end_step(self) -> ev.Dispatched:
        """The pass ends: its number. Extend this where the engine is told."""
        self.step += 1
        return ev.Dispatched(Step(self.step))

    def execute(self) -> ev.Done | None:
        """The oldest dispatched step runs on the worker."""
        return ev.Done()

    def process(self) -> ev.Done | None:
        """The output of the oldest executed step reaches the scheduler."""
        return ev.Done()

    @_missing
    def release_retained(self, fence: Step) -> ev.Released:
        """Release the endpoints of drained copies up to a step."""
        raise Unsupported("release_retained is not written")

    # --- the connector, the prefix cache, questions ---------------------------------------------

    def offload_read(self, request: RequestId) -> ev.Done | None:
        """The connector reads what it was handed."""
        return ev.Done()

    def offload_done(self, request: RequestId) -> ev.Done | None:
        """The connector will not read again what it was handed."""
        return ev.Done()

    @_missing
    def load_external(self, request: RequestId, ok: bool) -> ev.Done | None:
        """A request's external tokens arrive, or fail to."""
        raise Unsupported("load_external is not written")

    @_missing
    def evict(self, blocks: tuple[BlockId, ...]) -> ev.Done | None:
        """Drop the keys of blocks."""
        raise Unsupported("evict is not written")

    @_missing
    def reset(self) -> ev.ResetDone:
        """Drop every key, if nothing is held."""
        raise Unsupported("reset is not written")

    @_missing
    def chunk(
        self,
        start: int,
        wanted: int,
        num_prompt_tokens: int,
        num_tokens: int,
        block_size: int,
        hash_unit: int,
        budget: int,
        cap: int = 0,
        fine: bool = False,
        eagle: bool = False,
        boundary: int = 0,
    ) -> ev.ChunkLength:
        """How many tokens a prefill chunk may compute."""
        raise Unsupported("chunk is not written")

    def snapshot(self) -> ev.Books:
        """Whatever `shows` names; not asked of an adapter that shows nothing."""
        raise NotImplementedError(f"{type(self).__name__} shows {self.shows}: write snapshot")
