"""A request that has not ended."""

from __future__ import annotations

from typing import Final, cast

from kvspec.spec.types import GroupId, RequestId, Tables

from .digest_chain import DigestChain

Offer = tuple[int, int, int]
"""A hand-off that was not drained: (group, block, boundary in tokens)."""

FIELDS: Final = (
    "_frozen", "_stale", "_whole", "chain", "chunk_end", "chunk_start", "computed", "last_step",
    "loading", "local", "low", "name", "offers", "pins", "registered", "tables", "tail",
)  # fmt: skip


class Request:
    """What is known of a request, and its block tables.

    `tail` is the prompt's last hash boundary, where a partial entry may stand; 0 outside fine mode.
    `local` is the hit of the first grant, `registered` how many tokens were looked at for keying,
    [`chunk_start`, `chunk_end`) the chunk that the open pass granted. `tables` is empty while the
    request waits. Before slot `low[g]`, a recurrent group's table is null: states given back are
    never looked at again.

    Table: `start`, `extend`, `cut`, `clear_slots`, `table`, `blocks`, `tails_first`
    Life:  `wait`
    Prove: `check`
    """

    __slots__ = FIELDS

    def __init__(self, name: RequestId, chain: DigestChain, tail: int) -> None:
        """A request that waits. O(1)."""
        self.name = name
        self.chain = chain
        self.tail: int = tail
        self.last_step: int = 0
        self.wait()

    def wait(self) -> None:
        """Hold nothing, with nothing computed. O(1)."""
        self.tables: list[list[int]] = []
        self.low: list[int] = []
        self._frozen: list[tuple[int, ...]] = []
        self._stale: int = 0
        self._whole: tuple[tuple[int, ...], ...] = ()
        self.computed: int = 0
        self.local: int = 0
        self.registered: int = 0
        self.loading: bool = False
        self.chunk_start: int = 0
        self.chunk_end: int = 0
        self.pins: list[int] = []
        self.offers: list[Offer] = []

    def start(self, tables: list[list[int]], low: list[int]) -> None:
        """Hold these tables from now on; they are not copied. O(groups)."""
        assert not self.tables
        self.tables = tables
        self.low = low
        self._frozen = [()] * len(tables)
        self._stale = (1 << len(tables)) - 1
        assert self.tables

    def clear_slots(self, g: int, slots: list[int]) -> None:
        """Put null into slots that there are. O(len(slots))."""
        table = self.tables[g]
        for slot in slots:
            table[slot] = 0
        self._stale |= 1 << g

    def cut(self, g: int, kept: int) -> list[int]:
        """Take the slots behind the first `kept` off a table; their blocks, last first. O(cut)."""
        table = self.tables[g]
        gone = [block for block in table[kept:][::-1] if block]
        del table[kept:]
        self._stale |= 1 << g
        return gone

    def extend(self, g: int, blocks: list[int]) -> None:
        """Add slots to a table. O(len(blocks))."""
        self.tables[g].extend(blocks)
        self._stale |= 1 << g

    def table(self) -> Tables:
        """The tables as an observation shows them. O(1), O(table) when it changed."""
        if self._stale:
            for g, table in enumerate(self.tables):
                if self._stale >> g & 1:
                    self._frozen[g] = tuple(table)
            self._whole = tuple(self._frozen)
            self._stale = 0
        return cast(Tables, self._whole)

    def blocks(self) -> list[int]:
        """The blocks of all tables, in order, null ones left out. O(table)."""
        return [block for table in self.tables for block in table if block]

    def tails_first(self) -> list[int]:
        """The blocks in the order in which they are freed. O(table)."""
        return [block for table in self.tables for block in table[::-1] if block]

    def offered(self) -> tuple[tuple[GroupId, int, int], ...]:
        """The hand-offs as an observation shows them. O(offers)."""
        return tuple([(GroupId(g), block, boundary) for g, block, boundary in self.offers])

    def check(self, recurrent: list[bool]) -> None:
        """Raise AssertionError, with every field, unless the representation is sound."""
        try:
            self._check(recurrent)
        except AssertionError as error:
            fields = " ".join(f"{name}={getattr(self, name)!r}" for name in FIELDS)
            raise AssertionError(f"request: {error}; {fields}") from error

    def _check(self, recurrent: list[bool]) -> None:
        self.chain.check()
        # There are tables for all groups or for none. O(1)
        assert len(self.tables) in (0, len(recurrent)), "tables"
        assert len(self.low) == len(self._frozen) == len(self.tables), "lists by group"
        # What was frozen is what is there, unless it is marked as stale. O(table)
        for g, table in enumerate(self.tables):
            assert self._stale >> g & 1 or self._frozen[g] == tuple(table), f"frozen table {g}"
            # Attention has no gaps; states before `low` are gone. O(table)
            assert recurrent[g] or 0 not in table, f"a gap in table {g}"
            assert not any(table[: self.low[g]]), f"a state below low in table {g}"
        assert self._stale or self._whole == tuple(self._frozen), "the frozen whole"
        # Lengths are in order. O(1)
        assert self.local >= 0, "local"
        assert self.chunk_start <= self.chunk_end, "chunk"
        assert not self.loading or self.tables, "it loads into nothing"
