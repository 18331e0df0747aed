"""Hand-offs to the connector that were not drained yet (design 4.7)."""

from __future__ import annotations

from collections.abc import Iterable

from kvspec.spec.types import GroupId, RequestId

from .pool import Pool
from .requests import Request


class Offers:
    """Which request offers which block. The offers themselves stand with their requests.

    Add:   `add`
    Drop:  `forget` (blocks that were taken), `kill` (those of a request)
    Take:  `drain`
    Prove: `check`
    """

    __slots__ = ("connected", "of_block", "offering", "pool")

    def __init__(self, pool: Pool, connected: bool) -> None:
        """Nothing offered. O(1)."""
        self.pool = pool
        self.connected: bool = connected
        self.of_block: dict[int, Request] = {}
        self.offering: dict[RequestId, Request] = {}

    def add(self, r: Request, g: int, block: int, boundary: int) -> None:
        """A block durably holds a state at a boundary; nothing without a connector. O(1)."""
        if self.connected:
            assert block not in self.of_block
            r.offers.append((g, block, boundary))
            self.of_block[block] = r
            self.offering[r.name] = r

    def forget(self, blocks: list[int]) -> None:
        """Blocks got another owner: nobody hands them off any more. O(len(blocks))."""
        if self.of_block:
            for block in blocks:
                owner = self.of_block.pop(block, None)
                if owner is not None:
                    owner.offers = [offer for offer in owner.offers if offer[1] != block]
                    if not owner.offers:
                        del self.offering[owner.name]

    def kill(self, r: Request) -> None:
        """A request's offers die with it. O(its offers)."""
        for _, block, _ in r.offers:
            del self.of_block[block]
        if r.offers:
            del self.offering[r.name]
            r.offers = []

    def drain(self) -> dict[RequestId, tuple[tuple[GroupId, int, int], ...]]:
        """Hand everything over; each block is pinned. O(offers)."""
        drained: dict[RequestId, tuple[tuple[GroupId, int, int], ...]] = {}
        for r in [*self.offering.values()]:
            drained[r.name] = r.offered()
            blocks = [block for _, block, _ in r.offers]
            self.pool.hold_many(blocks)
            r.pins.extend(blocks)
            self.kill(r)
        assert not self.of_block
        return drained

    def check(self, requests: Iterable[Request]) -> None:
        """Raise AssertionError, with every field, unless the representation is sound."""
        fields = f"offers: {self.of_block=} {self.offering=}"
        offers = {block: r for r in requests for _, block, _ in r.offers}
        # Both maps say what the requests say. O(requests)
        assert self.of_block == offers, f"{fields} {offers=}"
        assert self.offering == {r.name: r for r in offers.values()}, fields
        # Without a connector there is nobody to offer anything to. O(1)
        assert self.connected or not offers, fields
