"""Faults of the plain worker: bytes that are not what the symbolic content says (design 4.11)."""

from __future__ import annotations

from kvspec.mutants.load import Edit
from kvspec.mutants.model import REFERENCE, Mutant

W = "worker"
COPIED = "            self._at(destination, 0, self.page)[:] = data\n"


def _worker(id: str, title: str, old: str, new: str, *atlas: str) -> Mutant:
    edit = Edit(W, old, new)
    return Mutant(id, "DATA.BYTES", title, (edit,), atlas, package=REFERENCE, worker=True)


MUTANTS = [
    _worker(
        "bytes-copy-short",
        "a copy leaves out the last cell of a block",
        COPIED,
        "            self._at(destination, 0, self.page - CELL)[:] = data[: self.page - CELL]\n",
        "H4",
    ),
    _worker(
        "bytes-copy-sequential",
        "copies run one after another, each seeing what the ones before wrote",
        COPIED,
        "            pass\n        for source, destination in pairs[::-1]:\n"
        "            self._at(destination, 0, self.page)[:] = bytes(\n"
        "                self._at(source, 0, self.page))[: self.page - 1] + b'?'\n",
        "H5",
    ),
    _worker(
        "bytes-copy-shifted",
        "a copied block is shifted by one byte",
        COPIED,
        "            self._at(destination, 0, self.page)[:] = data[1:] + data[:1]\n",
        "H4",
    ),
    _worker(
        "bytes-copy-wrapped",
        "the block number of a copy's source wraps at 8",
        "read = [bytes(self._at(source, 0, self.page)) for source, _ in pairs]",
        "read = [bytes(self._at(source % 8 or source, 0, self.page)) for source, _ in pairs]",
        "H3",
    ),
    _worker(
        "bytes-zero-next",
        "zeroing a block runs over into the next one",
        '        self.store.fill(work.zeroed, b"\\0")\n',
        '        self.store.fill(work.zeroed, b"\\0")\n'
        "        last = self.config.num_blocks - 1\n"
        "        for block in work.zeroed:\n"
        "            if block < last:\n"
        '                self.store.write(BlockId(block + 1), 0, b"\\0" * CELL)\n',
        "H2",
    ),
    _worker(
        "bytes-zero-short",
        "zeroing leaves the last cell of a block",
        '        self.store.fill(work.zeroed, b"\\0")\n',
        "        for block in work.zeroed:\n"
        '            self.store.write(block, 0, b"\\0" * (self.page - CELL))\n',
        "H1",
    ),
    _worker(
        "bytes-zero-late",
        "zeroing runs after the copies",
        "        self.store.copy(work.copies)\n",
        '        self.store.copy(work.copies)\n        self.store.fill(work.zeroed, b"\\0")\n'
        '        self.store.fill(tuple(d for _, d in work.copies), b"\\0")\n',
        "H2",
    ),
    _worker(
        "bytes-carry-none",
        "a state is computed from nothing and not from the state before",
        "cell = read.get(g, first_cell())",
        "cell = first_cell()",
        "C1",
    ),
    _worker(
        "bytes-copy-after",
        "copies run after states were read",
        "        self.store.copy(work.copies)\n"
        "        states = [self._read_states(forward) for forward in work.forwards]\n",
        "        states = [self._read_states(forward) for forward in work.forwards]\n"
        "        self.store.copy(work.copies)\n",
        "B3",
    ),
]
