"""The fast KV-cache manager: one method per event. What an event costs stands beside it."""

from __future__ import annotations

from collections import Counter
from typing import cast

from kvspec.spec import events as ev
from kvspec.spec.types import (
    Adapter,
    BlockId,
    Config,
    GroupId,
    Identity,
    Media,
    RequestId,
    Step,
    Table,
    Tables,
    Token,
)

from .chunk_rule import chunk_tokens
from .digest_chain import DigestChain
from .fences import Fences
from .grants import Granter
from .layout import Layout
from .lookup import Found, Search, truncated
from .offers import Offers
from .pool import Pool
from .registration import register, retract
from .requests import Request
from .step_lists import StepLists


class Detached:
    """What was taken off a request and is still held."""

    __slots__ = ("blocks", "fence", "pins")

    def __init__(self) -> None:
        self.blocks: list[int] = []
        self.pins: list[int] = []
        self.fence: int = 0


class Manager:
    """A paged prefix-sharing KV-cache for hybrid models.

    Requests:  `submit`, `append`, `finish`, `abort`, `preempt`, `withdraw`, `detach`,
               `free_detached`
    Hits:      `lookup`, `lookup_for_connector`, `truncate`
    Blocks:    `allocate`
    Pass:      `begin_step`, `take_zeroing`, `take_copies`, `take_offloads`, `end_step`, `execute`,
               `process`, `release_retained`
    Connector: `offload_read`, `offload_done`, `load_external`
    Index:     `evict`, `reset`
    Ask:       `chunk`, `snapshot`
    Prove:     `check`

    >>> from kvspec.spec.types import Group, GroupKind
    >>> manager = Manager()
    >>> _ = manager.configure(Config(9, 2, (Group(GroupKind.FULL, 2),), 8))
    >>> _ = manager.submit(RequestId("a"), (Token(1), Token(2), Token(3)))
    >>> manager.allocate(RequestId("a"), 3).table
    ((1, 2),)
    """

    def __init__(self) -> None:
        """Nothing works before `configure`."""
        self.layout: Layout
        self.pool: Pool
        self.lists: StepLists
        self.fences: Fences
        self.offers: Offers
        self.granter: Granter
        self.requests: dict[RequestId, Request]
        self.detached: dict[RequestId, Detached]
        self.asked: RequestId | None
        self.found: Found | None

    def configure(self, config: Config) -> ev.Capabilities:
        """Start with an empty cache. O(num_blocks)."""
        self.layout = Layout(config)
        self.pool = Pool(config.num_blocks, self.layout.num_groups)
        self.lists = StepLists(self.layout)
        self.fences = Fences(self.pool, config.deferral)
        self.offers = Offers(self.pool, self.layout.connected)
        self.granter = Granter(self.layout, self.pool, self.lists, self.fences, self.offers)
        self.requests, self.detached = {}, {}
        self.asked = self.found = None
        return ev.Capabilities("optimized", shows=ev.SHOWABLE)

    # --- requests -------------------------------------------------------------------------------

    def submit(
        self,
        request: RequestId,
        tokens: tuple[Token, ...],
        salt: str | None = None,
        adapter: Adapter | None = None,
        media: tuple[Media, ...] = (),
    ) -> ev.Done:
        """A request arrives with its prompt. O(len(tokens))."""
        self.asked = None
        unit = self.layout.hash_unit
        chain = DigestChain(Identity(salt, adapter, media), tokens, unit)
        tail = len(tokens) // unit * unit if self.layout.fine else 0
        self.requests[request] = Request(request, chain, tail)
        return ev.Done()

    def append(self, request: RequestId, tokens: tuple[Token, ...]) -> ev.Done:
        """Sampled tokens become known. O(len(tokens))."""
        self.asked = None
        self.requests[request].chain.extend(tokens)
        return ev.Done()

    # --- lookup ---------------------------------------------------------------------------------

    def _search(self, request: RequestId) -> Search:
        chain = self.requests[request].chain
        return Search(self.layout, self.pool.index, chain.digests, chain.count)

    def lookup(self, request: RequestId) -> ev.Hit:
        """The joint hit. O(digests walked)."""
        found = self._search(request).joint()
        self.asked, self.found = request, found
        return ev.Hit(cast(Tables, tuple(found.blocks)), found.num_tokens, found.boundary)

    def lookup_for_connector(self, request: RequestId) -> ev.ConnectorHit:
        """The hit as a connector is told it. O(digests walked)."""
        found = self._search(request).for_connector()
        self.asked, self.found = request, found
        blocks = cast(Tables, tuple(found.blocks))
        return ev.ConnectorHit(blocks, found.num_tokens, found.boundary, found.diverged)

    def truncate(self, request: RequestId, num_tokens: int) -> ev.View:
        """A view of the last lookup at a length that ends a block in every group. O(blocks)."""
        assert self.found is not None
        assert self.asked == request, f"no lookup of {request!r} directly before"
        cut = truncated(self.layout, self.found, num_tokens)
        if isinstance(cut, str):
            raise ev.Rejected(cut)
        self.found = cut
        return ev.View(cast(Tables, tuple(cut.blocks)))

    # --- allocation -----------------------------------------------------------------------------

    def allocate(
        self,
        request: RequestId,
        num_new_tokens: int,
        num_external_tokens: int = 0,
        num_lookahead_tokens: int = 0,
        delay_caching: bool = False,
    ) -> ev.Grant:
        """Grant the blocks that more tokens need, or refuse. O(groups) where none is taken."""
        asked, self.asked = self.asked, None
        if num_new_tokens == 0 and num_external_tokens == 0:
            raise ev.Rejected("a grant of no new and no external tokens")
        r = self.requests[request]
        if r.tables:
            grant = self.granter.later(r, num_new_tokens, num_lookahead_tokens)
        else:
            hit = self.found if asked == request else None
            hit = hit or Found.nothing(self.layout.num_groups)
            tokens = num_new_tokens, num_external_tokens, num_lookahead_tokens
            grant = self.granter.first(r, hit, *tokens)
        if grant.granted and num_new_tokens:
            start = r.computed
            end = start + num_new_tokens
            self.lists.record(r, start, end)
            if self.layout.caching and not delay_caching and not r.loading:
                register(self.layout, self.pool.index, r, start, end)
        return grant

    # --- the pass -------------------------------------------------------------------------------

    def begin_step(self) -> ev.Done:
        """A pass begins. O(1)."""
        self.asked = None
        self.lists.begin()
        return ev.Done()

    def take_zeroing(self) -> ev.Zeroing:
        """Blocks to zero in this step; those that were given up again are left out. O(blocks)."""
        self.asked = None
        return ev.Zeroing(cast(Table, self.lists.drain_zeroing()))

    def take_copies(self) -> ev.Copies:
        """The queued copies; their endpoints keep a reference until released. O(copies)."""
        self.asked = None
        copies = self.lists.drain_copies()
        ends = [end for pair in copies for end in pair]
        if ends:
            self.fences.retain(list[int](ends))
        return ev.Copies(copies, tuple(ends))

    def take_offloads(self) -> ev.Offloads:
        """What is handed to the connector; each block is pinned. O(hand-offs)."""
        self.asked = None
        offloads = self.offers.drain()
        return ev.Offloads(
            cast(dict[RequestId, tuple[tuple[GroupId, BlockId, int], ...]], offloads)
        )

    def end_step(self) -> ev.Dispatched:
        """Dispatch what was granted; computed tokens advance. O(granted)."""
        self.asked = None
        step = self.fences.dispatch()
        self.lists.end(step)
        return ev.Dispatched(Step(step))

    def execute(self) -> ev.Done:
        """The worker's business. O(1)."""
        self.asked = None
        return ev.Done()

    def process(self) -> ev.Done:
        """A step's output arrives: what waited behind it is freed. O(freed)."""
        self.asked = None
        self.fences.process()
        return ev.Done()

    def release_retained(self, fence: Step) -> ev.Released:
        """Release endpoints of copies up to the fence: now, or when it is reached. O(released)."""
        self.asked = None
        return ev.Released(cast(Table, tuple(self.fences.release_retained(fence))))

    # --- the end of a request -------------------------------------------------------------------

    def _take_back(self, r: Request) -> None:
        """Blocks and pins of a request go back, tails first; what it offered dies."""
        tails = r.tails_first()
        self.lists.unzero_many(tails, self.pool.refs)
        self.fences.release(tails, r.last_step)
        self.pool.drop_many(r.pins)
        self.offers.kill(r)

    def finish(self, request: RequestId) -> ev.Done:
        """A request is done: its blocks and pins go back. O(table)."""
        self.asked = None
        self._take_back(self.requests.pop(request))
        return ev.Done()

    def abort(self, request: RequestId) -> ev.Done:
        """To the cache the same as `finish`. O(table)."""
        return self.finish(request)

    def preempt(self, request: RequestId) -> ev.Done:
        """The request waits again, with nothing computed. O(table)."""
        self.asked = None
        r = self.requests[request]
        self._take_back(r)
        r.wait()
        return ev.Done()

    def withdraw(self, request: RequestId) -> ev.Done:
        """The chunk granted in this step will never run: what it promised goes. O(table)."""
        r = self.requests[request]
        self.lists.cancel(r)
        retract(self.layout, self.pool.index, r)
        return self.preempt(request)

    def detach(self, request: RequestId) -> ev.Detached:
        """Take blocks and pins off the request and hold on to them. O(table)."""
        self.asked = None
        r = self.requests[request]
        held = self.detached.setdefault(request, Detached())
        blocks, pins = r.blocks(), r.pins
        self.lists.unzero_many(blocks, self.pool.refs)
        held.blocks += blocks
        held.pins += pins
        held.fence = max(held.fence, r.last_step)
        self.offers.kill(r)
        r.wait()
        return ev.Detached(cast(Table, tuple(pins + blocks)))

    def free_detached(self, request: RequestId) -> ev.Done:
        """Free what was detached, tails first, and drop its pins. O(detached)."""
        self.asked = None
        held = self.detached.pop(request)
        self.fences.release(held.blocks[::-1], held.fence)
        self.pool.drop_many(held.pins)
        return ev.Done()

    # --- the connector --------------------------------------------------------------------------

    def offload_read(self, request: RequestId) -> ev.Done:
        """The connector's business. O(1)."""
        self.asked = None
        return ev.Done()

    def offload_done(self, request: RequestId) -> ev.Done:
        """The pins stay until the blocks are freed. O(1)."""
        self.asked = None
        return ev.Done()

    def load_external(self, request: RequestId, ok: bool) -> ev.Done:
        """External tokens arrived, or the request falls back to its local hit. O(external)."""
        self.asked = None
        r = self.requests[request]
        r.loading = False
        if ok:
            return ev.Done()
        self.lists.cancel(r)
        for g, size in enumerate(self.layout.sizes):
            kept = -(-r.local // size)
            if self.layout.recurrent[g]:
                gone = r.cut(g, kept)
                self.lists.unzero_many(gone, self.pool.refs)
                self.fences.release(gone, r.last_step)
            elif self.layout.zeroed[g]:
                for block in r.tables[g][kept : -(-r.computed // size)]:
                    self.lists.zero(block)
        r.computed = r.local
        return ev.Done()

    # --- the prefix cache -----------------------------------------------------------------------

    def evict(self, blocks: Table) -> ev.Done:
        """Drop the keys of blocks; an id out of range is an error. O(len(blocks))."""
        self.asked = None
        for block in blocks:
            if not 0 < block < len(self.pool.refs):
                raise ev.Rejected(f"block {block} is not in 1..{len(self.pool.refs) - 1}")
        self.pool.index.unpublish_many(list[int](blocks))
        return ev.Done()

    def reset(self) -> ev.ResetDone:
        """Drop all keys, if nothing is held. O(keys)."""
        self.asked = None
        if not self.pool.idle:
            return ev.ResetDone(False)
        self.pool.index.clear()
        return ev.ResetDone(True)

    # --- questions ------------------------------------------------------------------------------

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
        """How many tokens a prefill chunk may compute. O(1)."""
        self.asked = None
        lengths = start, wanted, num_prompt_tokens, num_tokens, block_size, hash_unit
        return ev.ChunkLength(chunk_tokens(*lengths, budget, cap, fine, eagle, boundary))

    def snapshot(self) -> ev.Books:
        """All books; a lookup before it still counts. O(pool)."""
        index, requests, detached = self.pool.index, self.requests, self.detached
        pins = [block for r in requests.values() for block in r.pins]
        pins += [block for held in detached.values() for block in held.pins]
        return ev.Books(
            refcounts={BlockId(b): n for b, n in enumerate(self.pool.refs) if n},
            free_list=cast(Table, tuple(self.pool.free)),
            keys={
                BlockId(b): ((GroupId(index.group_of[b]), index.digest_of[b].hex()),)
                for b, length in enumerate(index.length_of)
                if length
            },
            pins=cast(Table, tuple(sorted(pins))),
            tables={name: r.table() for name, r in requests.items() if r.tables},
        )

    def check(self) -> None:
        """Raise AssertionError unless every structure is sound, and they agree. O(everything)."""
        self.pool.check()
        self.fences.check()
        self.lists.check()
        self.offers.check(self.requests.values())
        holders: Counter[int] = Counter()
        for name, r in self.requests.items():
            # Requests stand under their names. O(requests)
            assert r.name == name, f"manager: {r.name!r} stands under {name!r}"
            r.check(self.layout.recurrent)
            holders.update(r.blocks() + r.pins)
        # A block's count is the number of its holders, each of which is known. O(everything held)
        for held in self.detached.values():
            holders.update(held.blocks + held.pins)
        for pair in self.lists.copies:
            holders.update(pair)
        for blocks in [ends for _, ends in self.fences.retained] + [*self.fences.fenced.values()]:
            holders.update(blocks)
        counted = {block: count for block, count in enumerate(self.pool.refs) if count}
        assert counted == dict(holders), f"manager: counted={counted} holders={dict(holders)}"
