"""Everything the judge knows of a cache, immutable, and the draft in which a judge edits it.

Control: who holds which block, what is keyed, what waits behind a fence. Data: what each block
holds. Nothing here is asked of the target beyond what its observations showed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any

from .content import POISON, Content
from .digests import Prefix
from .events import CopyPair
from .types import (
    BlockId,
    Config,
    Digest,
    GroupId,
    RequestId,
    Step,
    Table,
    Tables,
    ceil_div,
)

Key = tuple[GroupId, Digest]
NO_STEP = Step(0)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a key promises of its block: the first `length` tokens of `prefix`, for a group.

    `moved`: the block is the copy that took the entry over from an owner.
    """

    group: GroupId
    prefix: Prefix
    length: int
    moved: bool = False

    @property
    def key(self) -> Key:
        """The key under which the block is found."""
        return self.group, self.prefix.digest_at(self.length)


@dataclass(frozen=True, slots=True)
class HandOff:
    """A block that holds the recurrent state at `boundary` tokens of `prefix` once `step` ran."""

    group: GroupId
    block: BlockId
    boundary: int
    prefix: Prefix
    step: Step


@dataclass(frozen=True, slots=True)
class Request:
    """A request that has not ended.

    `local` is the hit at its first grant, a place to resume from when `resumable`. `worker` is the
    table as the worker knows it, empty until a grant of new tokens announced it. Registration has
    looked at the first `registered` tokens. `refused`: it asked for more than there was.
    """

    prefix: Prefix
    num_prompt_tokens: int
    computed: int = 0
    tables: Tables = ()
    worker: Tables = ()
    registered: int = 0
    local: int = 0
    resumable: bool = True
    loading: bool = False
    last_step: Step = NO_STEP
    pins: tuple[HandOff, ...] = ()
    reading: bool = False
    refused: bool = False

    @property
    def stranded(self) -> bool:
        """A failed load left the request nowhere to resume from: it must start over."""
        return bool(self.tables) and not self.loading and not self.resumable

    def waiting(self) -> Request:
        """The request after its blocks were taken off it."""
        return Request(self.prefix, self.num_prompt_tokens, last_step=self.last_step)


@dataclass(frozen=True, slots=True)
class DetachedList:
    """What was detached from a request: blocks table by table, to be freed from the end."""

    blocks: Table = ()
    pins: tuple[HandOff, ...] = ()
    reading: bool = False
    fence: Step = NO_STEP


@dataclass(frozen=True, slots=True)
class Forward:
    """A chunk [start, end) of a request, to be computed through the worker's tables."""

    request: RequestId
    prefix: Prefix
    start: int
    end: int
    tables: Tables


@dataclass(frozen=True, slots=True)
class Work:
    """What one step does on the worker, in this order: taken blocks are poison until written."""

    number: Step
    taken: Table = ()
    zeroed: Table = ()
    copies: tuple[CopyPair, ...] = ()
    forwards: tuple[Forward, ...] = ()


@dataclass(frozen=True, slots=True)
class Pass:
    """A scheduling pass that is open; `granted` lists the grants in order, each with its hits."""

    work: Work
    granted: tuple[tuple[RequestId, Table], ...] = ()
    withdrawn: frozenset[RequestId] = frozenset()
    drained: bool = False
    copies_taken: bool = False


@dataclass(frozen=True, slots=True)
class LastLookup:
    """The result of the lookup that directly precedes, or a view of it.

    `states` tells, per recurrent group, the length whose state its last slot holds, 0 where it has
    none; None for full groups. With `guessed`, keys are hidden and `states` are only as far as the
    slots reach. A view knows the `whole` that it was cut from.
    """

    request: RequestId
    blocks: Tables
    num_tokens: int
    states: tuple[int | None, ...]
    guessed: bool = False
    whole: LastLookup | None = None

    @property
    def resumable(self) -> bool:
        """Whether every recurrent group surely has its state at exactly the hit's length."""
        if self.guessed:
            return False
        return all(state is None or state == self.num_tokens for state in self.states)


@dataclass(frozen=True, slots=True)
class Due:
    """What the next snapshot must show right, and the clause that says so.

    `what` is "key" or "count"; the value expected is that of the state at the snapshot.
    """

    clause: str
    what: str
    block: BlockId


@dataclass(frozen=True, slots=True)
class State:
    """A cache as the judge knows it.

    What waits in `fenced` is lists of blocks, each to be freed from its end. `freed` are the lists
    that the event before freed, less the blocks that others still held. `free_list` is the one
    shown last, while nothing but questions came after. `names` and `digests` translate between
    what the target calls a digest and ours, as learned from the keys it has `shown`, last of all;
    `settled` are the keys with which those were last found to agree.
    """

    config: Config
    requests: Mapping[RequestId, Request] = field(default_factory=dict)
    refs: Mapping[BlockId, int] = field(default_factory=dict)
    keys: Mapping[BlockId, Entry] = field(default_factory=dict)
    index: Mapping[Key, frozenset[BlockId]] = field(default_factory=dict)
    contents: Mapping[BlockId, Content] = field(default_factory=dict)
    detached: Mapping[RequestId, DetachedList] = field(default_factory=dict)
    offers: Mapping[RequestId, tuple[HandOff, ...]] = field(default_factory=dict)
    dead_offers: frozenset[RequestId] = frozenset()
    retained: tuple[tuple[Step, Table], ...] = ()
    fenced: tuple[tuple[Step, Tables], ...] = ()
    zero_due: frozenset[BlockId] = frozenset()
    zero_allowed: frozenset[BlockId] = frozenset()
    open: Pass | None = None
    in_flight: tuple[Work, ...] = ()
    dispatched: Step = NO_STEP
    executed: Step = NO_STEP
    processed: Step = NO_STEP
    last_lookup: LastLookup | None = None
    freed: Tables = ()
    free_list: Table | None = None
    due: tuple[Due, ...] = ()
    names: Mapping[tuple[GroupId, str], Digest] = field(default_factory=dict)
    digests: Mapping[Key, str] = field(default_factory=dict)
    shown: Mapping[BlockId, tuple[tuple[GroupId, str], ...]] = field(default_factory=dict)
    settled: Mapping[BlockId, Entry] | None = None

    @property
    def num_free(self) -> int:
        """How many blocks of the pool nobody holds."""
        return self.config.num_blocks - 1 - len(self.refs)

    def content(self, block: BlockId) -> Content:
        """What a block holds."""
        return self.contents.get(block, POISON)

    def has_key(self, group_id: GroupId, prefix: Prefix, length: int) -> bool:
        """Whether some block of a group is keyed at the first `length` tokens of `prefix`."""
        return (group_id, prefix.digest_at(length)) in self.index


_FIELDS = tuple(field.name for field in fields(State))
_all_fields = attrgetter(*_FIELDS)

_MAPS = ("requests", "refs", "keys", "index", "contents", "detached", "offers", "names", "digests")


class Draft:
    """A state being edited. Each map is copied when first changed; the original never changes."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._changes: dict[str, Any] = {}

    def freeze(self) -> State:
        """The edited state."""
        if not self._changes:
            return self._state
        fields = dict(zip(_FIELDS, _all_fields(self._state), strict=True))
        return State(**fields | self._changes)

    def __getattr__(self, name: str) -> Any:
        """A field of the state as edited so far."""
        changes = self._changes
        return changes[name] if name in changes else getattr(self._state, name)

    def set(self, **changes: Any) -> None:
        """Set fields of the state that are not maps."""
        self._changes.update(changes)

    def _edit(self, name: str) -> dict[Any, Any]:
        if name not in self._changes:
            self._changes[name] = dict(getattr(self._state, name))
        edited: dict[Any, Any] = self._changes[name]
        return edited

    def put(self, name: str, key: Any, value: Any) -> None:
        """Set one entry of a map."""
        assert name in _MAPS, name
        self._edit(name)[key] = value

    def remove(self, name: str, key: Any) -> None:
        """Remove one entry of a map, if there."""
        assert name in _MAPS, name
        if key in getattr(self, name):
            del self._edit(name)[key]

    def request(self, name: RequestId) -> Request:
        """A request as edited so far."""
        found: Request = self.requests[name]
        return found

    def update(self, name: RequestId, **changes: Any) -> Request:
        """Change fields of a request."""
        changed = replace(self.request(name), **changes)
        self.put("requests", name, changed)
        return changed

    def count(self, block: BlockId) -> int:
        """How many holders a block has."""
        found: int = self.refs.get(block, 0)
        return found

    @property
    def num_free(self) -> int:
        """How many blocks of the pool nobody holds."""
        return self._state.config.num_blocks - 1 - len(self.refs)

    def hold(self, block: BlockId) -> None:
        """A block gains a holder."""
        self.put("refs", block, self.count(block) + 1)

    def drop(self, block: BlockId) -> None:
        """A block loses a holder."""
        count = self.count(block)
        assert count > 0, f"block {block} has no holder to lose"
        if count == 1:
            self.remove("refs", block)
        else:
            self.put("refs", block, count - 1)

    def entry(self, block: BlockId) -> Entry | None:
        """What a block is keyed for."""
        found: Entry | None = self.keys.get(block)
        return found

    def publish(self, block: BlockId, entry: Entry) -> None:
        """Key a block; a key that it had gives way."""
        self.unpublish(block)
        self.put("keys", block, entry)
        others = self.index.get(entry.key, frozenset())
        self.put("index", entry.key, others | {block})

    def unpublish(self, block: BlockId) -> None:
        """Drop a block's key, if it has one."""
        entry = self.entry(block)
        if entry is None:
            return
        self.remove("keys", block)
        others = self.index[entry.key] - {block}
        if others:
            self.put("index", entry.key, others)
        else:
            self.remove("index", entry.key)

    def content(self, block: BlockId) -> Content:
        """What a block holds."""
        found: Content = self.contents.get(block, POISON)
        return found


def written_slots(config: Config, forward: Forward) -> list[tuple[GroupId, int, int]]:
    """What a chunk writes: (group, slot, lowest position written there; 0 for a state)."""
    found: list[tuple[GroupId, int, int]] = []
    for g, group in enumerate(config.groups):
        size = group.block_size
        if group.recurrent:
            found.append((GroupId(g), (forward.end - 1) // size, 0))
            continue
        for slot in range(forward.start // size, ceil_div(forward.end, size)):
            found.append((GroupId(g), slot, max(forward.start, slot * size)))
    return found


def lowest_writes(config: Config, work: Work) -> dict[BlockId, int]:
    """Each block that a step writes, with the lowest position written (0 for a state or a copy)."""
    lowest = {destination: 0 for _, destination in work.copies}
    for forward in work.forwards:
        for g, slot, position in written_slots(config, forward):
            block = forward.tables[g][slot]
            lowest[block] = min(position, lowest.get(block, position))
    return lowest


def read_slots(config: Config, forward: Forward) -> list[tuple[GroupId, int]]:
    """What a chunk reads: every slot of full groups, the state it starts from of the others."""
    found: list[tuple[GroupId, int]] = []
    for g, group in enumerate(config.groups):
        if not group.recurrent:
            slots = range(ceil_div(forward.end, group.block_size))
            found.extend((GroupId(g), slot) for slot in slots)
        elif forward.start:
            found.append((GroupId(g), (forward.start - 1) // group.block_size))
    return found


def touched_blocks(config: Config, work: Work) -> set[BlockId]:
    """Every block that a step reads or writes."""
    blocks = {block for pair in work.copies for block in pair} | set(work.zeroed)
    for forward in work.forwards:
        for g, slot, _ in written_slots(config, forward):
            blocks.add(forward.tables[g][slot])
        for g, slot in read_slots(config, forward):
            blocks.add(forward.tables[g][slot])
    return blocks


def later_writes(state: State) -> set[BlockId]:
    """Blocks that a step not yet executed will write."""
    works = [work for work in state.in_flight if work.number > state.executed]
    works += [state.open.work] if state.open else []
    blocks: set[BlockId] = set()
    for work in works:
        blocks |= set(work.zeroed) | set(lowest_writes(state.config, work))
    return blocks
