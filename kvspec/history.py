"""What became of each key in a trace: who gave it, who took it away."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvspec.spec import events as ev
from kvspec.spec.state import Entry, Key, State
from kvspec.spec.types import BlockId, RequestId


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of the trace by its place, where the configuration has 0, and its request."""

    at: int
    event: str
    request: RequestId | None


@dataclass(frozen=True, slots=True)
class Life:
    """One key on one block, from the event that gave it to the one that took it, if any.

    `filled` is the request whose chunk wrote the block, which keeps a moved entry's writer.
    """

    block: BlockId
    entry: Entry
    given: Happened
    filled: RequestId | None
    taken: Happened | None = None
    why: str = ""


@dataclass
class History:
    """The lives of all keys so far, as the judge's states show them."""

    lives: dict[Key, list[Life]] = field(default_factory=dict)
    now: dict[BlockId, Life] = field(default_factory=dict)
    identities: dict[RequestId, ev.Submit] = field(default_factory=dict)

    def note(self, at: int, before: State, event: ev.Event, after: State) -> None:
        """Learn from one event and the states around it."""
        if isinstance(event, ev.Submit):
            self.identities[event.request] = event
        if before.keys is after.keys:
            return
        what = Happened(at, ev.EVENT_NAMES[type(event)], getattr(event, "request", None))
        writers = {life.entry.key: life.filled for life in self.now.values()}
        for block in sorted(before.keys.keys() | after.keys.keys()):
            old, new = before.keys.get(block), after.keys.get(block)
            if old == new:
                continue
            if old is not None:
                self._take(block, what, _why(event, block, old, new, after))
            if new is not None:
                filled = writers.get(new.key, what.request) if new.moved else what.request
                self._give(Life(block, new, what, filled))

    def _give(self, life: Life) -> None:
        self.now[life.block] = life
        self.lives.setdefault(life.entry.key, []).append(life)

    def _take(self, block: BlockId, what: Happened, why: str) -> None:
        life = self.now.pop(block)
        lives = self.lives[life.entry.key]
        ended = Life(block, life.entry, life.given, life.filled, what, why)
        lives[lives.index(life)] = ended


def _why(event: ev.Event, block: BlockId, old: Entry, new: Entry | None, after: State) -> str:
    """What took a key from a block, in words."""
    match event:
        case ev.Evict():
            return "evicted on demand"
        case ev.Reset():
            return "the cache was reset"
        case ev.Withdraw():
            return f"the chunk of {event.request!r} that was to write it was withdrawn"
        case ev.Allocate() if new is not None and new.prefix is old.prefix:
            return "the block was completed: its full key took the place of the partial one"
        case ev.Allocate() if after.index.get(old.key, frozenset()):
            return f"{event.request!r} went on in the block: the entry moved to another"
        case ev.Allocate():
            return f"the block was taken for {event.request!r}"
    return "it went"
