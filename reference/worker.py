"""The plain worker: real bytes, moved as a step says (design 3, 4.11).

Every position of a prefix has a cell, every state is a cell: `chain(prefix)[n]` is the cell of the
first n tokens. A forward computes each cell from the bytes of the one before it *as it reads them*
through its block table, so that a wrong byte spreads as a wrong activation would.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Protocol

from kvspec.spec.content import Base, Content, RecurrentState
from kvspec.spec.digests import Prefix, encode_extras, encode_tokens
from kvspec.spec.state import Forward, Work, written_slots
from kvspec.spec.types import BlockId, Config, GroupId, Identity, Table, Token

CELL = 16
"""Bytes of a cell."""
POISON, DRAFT = b"\xbd", b"\xdd"


def first_cell() -> bytes:
    """The cell before the first token."""
    return hashlib.sha256(b"kvspec cell").digest()[:CELL]


def next_cell(cell: bytes, token: Token, identity: Identity, position: int) -> bytes:
    """The cell of one more token, computed from the bytes of the cell before."""
    extras = encode_extras(identity, position, position + 1)
    return hashlib.sha256(cell + encode_tokens((token,)) + extras).digest()[:CELL]


@lru_cache(maxsize=256)
def chain(prefix: Prefix) -> tuple[bytes, ...]:
    """The cells of the first 0, 1, 2, ... tokens."""
    cells = [first_cell()]
    for position, token in enumerate(prefix.tokens):
        cells.append(next_cell(cells[-1], token, prefix.identity, position))
    return tuple(cells)


def page_bytes(config: Config) -> int:
    """Bytes of a block: groups share the pool, so the largest group decides."""
    return CELL * max(1 if g.recurrent else g.block_size for g in config.groups)


class Store(Protocol):
    """Memory for the blocks of a pool, each `page` bytes. All sizes and offsets in bytes."""

    def fill(self, blocks: Table, value: bytes) -> None:
        """Fill whole blocks with one byte value."""

    def copy(self, pairs: tuple[tuple[BlockId, BlockId], ...]) -> None:
        """Copy whole blocks (source, destination), all reads before all writes."""

    def read(self, block: BlockId, offset: int, size: int) -> bytes:
        """Read part of a block."""

    def write(self, block: BlockId, offset: int, data: bytes) -> None:
        """Write part of a block."""


class PlainStore:
    """One bytearray."""

    def __init__(self, num_blocks: int, page: int) -> None:
        self.page = page
        self.memory = memoryview(bytearray(POISON * (num_blocks * page)))

    def _at(self, block: BlockId, offset: int, size: int) -> memoryview:
        assert block > 0
        assert 0 <= offset <= self.page - size
        start = block * self.page + offset
        return self.memory[start : start + size]

    def fill(self, blocks: Table, value: bytes) -> None:
        """Fill whole blocks with one byte value."""
        for block in blocks:
            self._at(block, 0, self.page)[:] = value * self.page

    def copy(self, pairs: tuple[tuple[BlockId, BlockId], ...]) -> None:
        """Copy whole blocks, all reads before all writes."""
        read = [bytes(self._at(source, 0, self.page)) for source, _ in pairs]
        for (_, destination), data in zip(pairs, read, strict=True):
            self._at(destination, 0, self.page)[:] = data

    def read(self, block: BlockId, offset: int, size: int) -> bytes:
        """Read part of a block."""
        return bytes(self._at(block, offset, size))

    def write(self, block: BlockId, offset: int, data: bytes) -> None:
        """Write part of a block."""
        self._at(block, offset, len(data))[:] = data


class Worker:
    """Executes steps on a store."""

    def __init__(self, config: Config, store: Store | None = None) -> None:
        self.config = config
        self.page = page_bytes(config)
        self.store: Store = store or PlainStore(config.num_blocks, self.page)

    def execute(self, work: Work) -> None:
        """Run a step: poison, zero, copies, carry of states, forward: all writes of attention."""
        self.store.fill(work.taken, POISON)
        self.store.fill(work.zeroed, b"\0")
        self.store.copy(work.copies)
        states = [self._read_states(forward) for forward in work.forwards]
        for forward in work.forwards:
            self._write_attention(forward)
        for forward, read in zip(work.forwards, states, strict=True):
            self._write_states(forward, read)

    def poison(self, blocks: Table) -> None:
        """Blocks change owner outside a step: a connector will write them."""
        self.store.fill(blocks, POISON)

    def load(self, block: BlockId, group_id: GroupId, prefix: Prefix, start: int, end: int) -> None:
        """A connector writes a whole block: the cells of positions [start, end), zero elsewhere."""
        self.store.fill((block,), b"\0")
        cells = chain(prefix)
        if self.config.groups[group_id].recurrent:
            self.store.write(block, 0, cells[end])
            return
        size = self.config.groups[group_id].block_size
        for position in range(start, end):
            self.store.write(block, position % size * CELL, cells[position + 1])

    def _read_states(self, forward: Forward) -> dict[int, bytes]:
        """The state each recurrent group starts from, read before any state is written."""
        read: dict[int, bytes] = {}
        for g, group in enumerate(self.config.groups):
            if group.recurrent and forward.start:
                slot = (forward.start - 1) // group.block_size
                read[g] = self.store.read(forward.tables[g][slot], 0, CELL)
        return read

    def _write_states(self, forward: Forward, read: dict[int, bytes]) -> None:
        tokens, identity = forward.prefix.tokens, forward.prefix.identity
        for g, group in enumerate(self.config.groups):
            if group.recurrent:
                cell = read.get(g, first_cell())
                for position in range(forward.start, forward.end):
                    cell = next_cell(cell, tokens[position], identity, position)
                slot = (forward.end - 1) // group.block_size
                self.store.write(forward.tables[g][slot], 0, cell)

    def _write_attention(self, forward: Forward) -> None:
        """The chunk's own cells, each from the one before it as the block table shows it."""
        tokens, identity = forward.prefix.tokens, forward.prefix.identity
        known = min(forward.end, len(forward.prefix))
        for g, group in enumerate(self.config.groups):
            if group.recurrent:
                continue
            cell, size, table = first_cell(), group.block_size, forward.tables[g]
            if forward.start:
                block, offset = table[(forward.start - 1) // size], (forward.start - 1) % size
                cell = self.store.read(block, offset * CELL, CELL)
            for position in range(forward.start, forward.end):
                if position < known:
                    cell = next_cell(cell, tokens[position], identity, position)
                data = cell if position < known else DRAFT * CELL
                self.store.write(table[position // size], position % size * CELL, data)


def render(content: Content, page: int, block_size: int) -> bytes:
    """The bytes of a block that holds this content; of a state, only its cell."""
    if isinstance(content, RecurrentState):
        return chain(content.prefix)[content.length]
    data = bytearray((POISON if content.base is Base.POISON else b"\0") * page)
    for run in content.runs:
        cells = chain(run.prefix) if run.prefix is not None else ()
        for position in range(run.start, run.end):
            offset = position % block_size * CELL
            cell = cells[position + 1] if cells else DRAFT * CELL
            data[offset : offset + CELL] = cell
    return bytes(data)


def changed_blocks(config: Config, work: Work) -> dict[BlockId, GroupId | None]:
    """The blocks that a step changes, with the group that last wrote each, if one did."""
    found: dict[BlockId, GroupId | None] = dict.fromkeys((*work.taken, *work.zeroed))
    found.update(dict.fromkeys(destination for _, destination in work.copies))
    for forward in work.forwards:
        for g, slot, _ in written_slots(config, forward):
            found[forward.tables[g][slot]] = g
    return found
