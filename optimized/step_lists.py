"""What a scheduling pass gathers until its step is dispatched."""

from __future__ import annotations

from kvspec.spec.events import CopyPair
from kvspec.spec.types import RequestId

from .layout import Layout
from .requests import Request


class StepLists:
    """Chunks granted, what they write, copies queued, blocks to zero.

    Pass:   `begin`, `end`
    Chunks: `record`, `cancel`, `lowest_write`
    Copies: `queue_copy`, `drain_copies`
    Zeroes: `zero`, `unzero_many`, `drain_zeroing`
    Prove:  `check`
    """

    __slots__ = ("copied_into", "copies", "granted", "layout", "to_zero", "writes")

    def __init__(self, layout: Layout) -> None:
        """Nothing granted. O(1)."""
        self.layout = layout
        self.granted: dict[RequestId, Request] = {}
        # Block -> lowest position that a chunk writes in it; 0 for a state. One chunk at most
        # writes a block: whoever else shares it reads only.
        self.writes: dict[int, int] = {}
        self.copies: list[CopyPair] = []
        self.copied_into: set[int] = set()
        self.to_zero: dict[int, None] = {}

    def begin(self) -> None:
        """A pass begins. O(granted in the last)."""
        self.granted.clear()
        self.writes.clear()

    def end(self, step: int) -> None:
        """The chunks are dispatched as this step. O(granted)."""
        for request in self.granted.values():
            request.computed = min(request.chunk_end, request.chain.count)
            request.last_step = step
        self.begin()

    def record(self, request: Request, start: int, end: int) -> None:
        """A chunk [start, end) was granted. O(groups + blocks written)."""
        assert start < end
        self.granted[request.name] = request
        request.chunk_start, request.chunk_end = start, end
        layout, writes = self.layout, self.writes
        for g in layout.recurrent_ids:
            writes[request.tables[g][(end - 1) // layout.sizes[g]]] = 0
        for g in layout.full_ids:
            size, table = layout.sizes[g], request.tables[g]
            first, slot = start // size, (end - 1) // size
            writes[table[first]] = start
            while slot > first:
                writes[table[slot]] = slot * size
                slot -= 1

    def cancel(self, request: Request) -> None:
        """A chunk will not run, if one was granted. O(groups + blocks written)."""
        if self.granted.pop(request.name, None) is None:
            return
        layout = self.layout
        last = request.chunk_end - 1
        for g in range(layout.num_groups):
            size = layout.sizes[g]
            first = last // size if layout.recurrent[g] else request.chunk_start // size
            for slot in range(first, last // size + 1):
                self.writes.pop(request.tables[g][slot], None)

    def lowest_write(self, block: int, otherwise: int) -> int:
        """The lowest position of a block that this step writes. O(1)."""
        return 0 if block in self.copied_into else self.writes.get(block, otherwise)

    def queue_copy(self, pair: CopyPair) -> None:
        """A copy runs at the start of the step. O(1)."""
        source, destination = pair
        assert destination not in self.copied_into, f"two copies into block {destination}"
        assert source != destination
        self.copies.append(pair)
        self.copied_into.add(destination)

    def drain_copies(self) -> tuple[CopyPair, ...]:
        """The copies queued. O(copies)."""
        copies = tuple(self.copies)
        self.copies.clear()
        self.copied_into.clear()
        return copies

    def zero(self, block: int) -> None:
        """A block has to be zeroed in this step. O(1)."""
        self.to_zero[block] = None

    def unzero_many(self, blocks: list[int], refs: list[int]) -> None:
        """Blocks leave their only holder: the next step does not zero them. O(len(blocks))."""
        if self.to_zero:
            for block in blocks:
                if refs[block] == 1:
                    self.to_zero.pop(block, None)

    def drain_zeroing(self) -> tuple[int, ...]:
        """The blocks to zero. O(blocks)."""
        blocks = tuple(self.to_zero)
        self.to_zero.clear()
        return blocks

    def check(self) -> None:
        """Raise AssertionError, with every field, unless the representation is sound."""
        fields = f"{self.granted.keys()=} {self.writes=} {self.copies=} {self.to_zero=}"
        # Destinations are those of the queue, each once. O(copies)
        destinations = [destination for _, destination in self.copies]
        assert self.copied_into == set(destinations), f"step lists: {fields}"
        assert len(self.copied_into) == len(destinations), f"step lists: {fields}"
        # What is written is what the chunks write. O(granted and written)
        again = StepLists(self.layout)
        for request in self.granted.values():
            again.record(request, request.chunk_start, request.chunk_end)
        assert again.writes == self.writes, f"step lists: {fields} {again.writes=}"
        # The null block is neither written nor zeroed. O(1)
        assert 0 not in self.writes, f"step lists: {fields}"
        assert 0 not in self.to_zero, f"step lists: {fields}"
