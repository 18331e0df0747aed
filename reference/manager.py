"""The plain KV-cache manager: one method per event, each the rule in its simplest form."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from kvspec.spec import events as ev
from kvspec.spec.chunks import chunk_length
from kvspec.spec.digests import make_prefix
from kvspec.spec.types import (
    NULL_BLOCK,
    Adapter,
    BlockId,
    Config,
    Connector,
    GroupId,
    Identity,
    Media,
    RequestId,
    Step,
    Table,
    Tables,
    Token,
    ceil_div,
)

from .lookup import Finder, Result
from .plan import FRESH, Offer, Plan, Request, plan_first, plan_next, written
from .pool import Pool

P = ParamSpec("P")
Answer = TypeVar("Answer")


def passes(
    event: Callable[Concatenate[Manager, P], Answer],
) -> Callable[Concatenate[Manager, P], Answer]:
    """An event after which an earlier lookup is no longer the one directly before."""

    @wraps(event)
    def method(self: Manager, /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        try:
            return event(self, *args, **kwargs)
        finally:
            self.last_lookup = None

    return method


class Manager:
    """A paged prefix-sharing KV-cache for hybrid models."""

    def __init__(self) -> None:
        self.config: Config
        self.pool: Pool

    def configure(self, config: Config) -> ev.Capabilities:
        """Start with an empty cache."""
        self.config = config
        self.pool = Pool(config.num_blocks)
        self.requests: dict[RequestId, Request] = {}
        self.last_lookup: tuple[RequestId, Result] | None = None
        self.step = 0
        self.processed = 0
        self.chunks: dict[RequestId, tuple[int, list[tuple[BlockId, int]]]] = {}
        self.to_zero: list[BlockId] = []
        self.copies: list[ev.CopyPair] = []
        self.retained: list[tuple[int, list[BlockId]]] = []
        self.fenced: list[tuple[int, list[BlockId]]] = []
        self.detached: dict[RequestId, tuple[list[BlockId], list[BlockId], int]] = {}
        return ev.Capabilities("reference", shows=ev.SHOWABLE)

    # --- requests -------------------------------------------------------------------------------

    @passes
    def submit(
        self,
        request: RequestId,
        tokens: tuple[Token, ...],
        salt: str | None = None,
        adapter: Adapter | None = None,
        media: tuple[Media, ...] = (),
    ) -> ev.Done:
        """A request arrives with its prompt."""
        prefix = make_prefix(Identity(salt, adapter, media), tokens, self.config.hash_unit)
        self.requests[request] = Request(prefix, len(tokens))
        return ev.Done()

    @passes
    def append(self, request: RequestId, tokens: tuple[Token, ...]) -> ev.Done:
        """Sampled tokens become known."""
        self.requests[request].prefix = self.requests[request].prefix.extended(tokens)
        return ev.Done()

    # --- lookup ---------------------------------------------------------------------------------

    def lookup(self, request: RequestId) -> ev.Hit:
        """The joint hit."""
        result = Finder(self.config, self.pool, self.requests[request].prefix).joint()
        self.last_lookup = request, result
        return ev.Hit(_frozen(result.blocks), result.num_tokens, result.shared_prefix_boundary)

    def lookup_for_connector(self, request: RequestId) -> ev.ConnectorHit:
        """The hit as a connector is told it."""
        result = Finder(self.config, self.pool, self.requests[request].prefix).for_connector()
        self.last_lookup = request, result
        boundary = result.shared_prefix_boundary
        return ev.ConnectorHit(_frozen(result.blocks), result.num_tokens, boundary, result.diverged)

    def truncate(self, request: RequestId, num_tokens: int) -> ev.View:
        """A view of the last lookup at a length that ends a block in every group."""
        assert self.last_lookup is not None
        last = self.last_lookup[1].whole or self.last_lookup[1]
        if num_tokens > last.num_tokens:
            raise ev.Rejected(f"the hit ends at {last.num_tokens} tokens")
        blocks: list[list[BlockId]] = []
        states: list[int] = []
        for g, group in enumerate(self.config.groups):
            if num_tokens % group.block_size:
                raise ev.Rejected(f"{num_tokens} tokens end inside a block of group {g}")
            slots = num_tokens // group.block_size
            if len(last.blocks[g]) < slots and not group.recurrent:
                raise ev.Rejected(f"group {g} does not cover {num_tokens} tokens")
            blocks.append(last.blocks[g][:slots])
            states.append(last.states[g] if last.states[g] <= num_tokens else 0)
        self.last_lookup = request, Result(blocks, num_tokens, states, whole=last)
        return ev.View(_frozen(blocks))

    # --- allocation -----------------------------------------------------------------------------

    @passes
    def allocate(
        self,
        request: RequestId,
        num_new_tokens: int,
        num_external_tokens: int = 0,
        num_lookahead_tokens: int = 0,
        delay_caching: bool = False,
    ) -> ev.Grant:
        """Grant the blocks that more tokens need, or refuse and change nothing."""
        if num_new_tokens == 0 and num_external_tokens == 0:
            raise ev.Rejected("a grant of no new and no external tokens")
        r = self.requests[request]
        first = not r.tables
        if first:
            hit = self._last_hit(request)
            tokens = num_new_tokens, num_external_tokens, num_lookahead_tokens
            plan = plan_first(self.config, hit, *tokens)
        else:
            self._give_back(r)
            plan = plan_next(self.config, self.pool, r, num_new_tokens, num_lookahead_tokens)
        hits = plan.hits if first else []
        unheld = sum(self.pool.refs[block] == 0 for block in set(hits))
        room = plan.num_fresh + unheld <= len(self.pool.free_list)
        if not room or (first and self._must_wait(plan, hit.num_tokens)):
            return ev.Grant(False, ((),) * len(self.config.groups), self._table(r))
        if first:
            r.computed, r.local, r.registered = plan.start, hit.num_tokens, hit.num_tokens
            r.loading = num_external_tokens > 0
        slots = [len(blocks) for blocks in (hit.blocks if first else r.tables)]
        grant = self._give(r, plan, hits, slots)
        if num_new_tokens:
            self.chunks[request] = plan.end, written(self.config, r, plan.start, plan.end)
        if not delay_caching and not r.loading:
            self._register(r, plan.start, plan.end)
        return grant

    def _last_hit(self, request: RequestId) -> Result:
        if self.last_lookup is not None and self.last_lookup[0] == request:
            return self.last_lookup[1]
        groups = self.config.groups
        return Result([[] for _ in groups], 0, [0] * len(groups))

    def _give_back(self, r: Request) -> None:
        """States before the one that the next chunk starts from are not needed any more."""
        for group, table in zip(self.config.groups, r.tables, strict=True):
            if group.recurrent and r.computed:
                needed = (r.computed - 1) // group.block_size
                gone = [i for i in range(needed) if table[i] != NULL_BLOCK]
                self._release([table[i] for i in reversed(gone)], r.last_step)
                for i in gone:
                    table[i] = NULL_BLOCK

    def _must_wait(self, plan: Plan, local: int) -> bool:
        """Whether the hit needs a state or a copy of positions that this step still writes."""
        lowest = {destination: 0 for _, destination in self.copies}
        for _, writes in self.chunks.values():
            for block, position in writes:
                lowest[block] = min(position, lowest.get(block, position))
        needed = [source for _, _, source in plan.private]
        for group, table in zip(self.config.groups, plan.tables, strict=True):
            needed += table if group.recurrent else []
        return any(lowest.get(block, local) < local for block in needed)

    def _give(self, r: Request, plan: Plan, hits: list[BlockId], known: list[int]) -> ev.Grant:
        """Hold the hits of all groups, then take blocks, then queue the copies.

        `known` is how many slots each group had before, or hit.
        """
        for block in hits:
            self.pool.hold(block)
        new_blocks: list[list[BlockId]] = []
        queued: list[ev.CopyPair] = []
        for g, table in enumerate(plan.tables):
            private = {slot: source for h, slot, source in plan.private if h == g}
            new = []
            for slot, planned in enumerate(table):
                if planned == FRESH:
                    external = r.loading and slot * self._size(g) < plan.start
                    table[slot] = self._take(g, external, slot in private)
                if planned == FRESH or (slot >= known[g] and planned == NULL_BLOCK):
                    new.append(table[slot])
                if slot in private:
                    self.pool.hold(table[slot])
                    queued.append((private[slot], table[slot]))
            new_blocks.append(new)
        for g, slot in plan.moves:
            queued.append(self._move(r, g, plan.tables[g][slot]))
        self.copies += queued
        r.tables = plan.tables
        return ev.Grant(True, _frozen(new_blocks), self._table(r), tuple(queued))

    def _size(self, g: int) -> int:
        return self.config.groups[g].block_size

    def _take(self, g: int, external: bool, copied: bool) -> BlockId:
        block = self.pool.take()
        for r in self.requests.values():
            r.offers = [offer for offer in r.offers if offer[1] != block]
        if block in self.to_zero:
            self.to_zero.remove(block)
        if self.config.groups[g].zeroed and not external and not copied:
            self.to_zero.append(block)
        return block

    def _move(self, r: Request, g: int, own: BlockId) -> ev.CopyPair:
        """The owner's partial tail: a copy takes over the key, and may be handed off."""
        key, length = self.pool.keys[own]
        moved = self._take(g, external=False, copied=True)
        self.pool.hold(own)
        self.pool.unpublish(own)
        self.pool.publish(moved, key, length)
        if self.config.connector is not Connector.NONE:
            r.offers.append((GroupId(g), moved, length))
        return own, moved

    def _register(self, r: Request, start: int, end: int) -> None:
        """Key what is complete up to `end`; drafts beyond the known tokens never are."""
        if not self.config.caching:
            return
        done, end = r.registered, min(end, len(r.prefix))
        unit = self.config.hash_unit
        tail = r.num_prompt_tokens // unit * unit if self.config.fine else 0
        for g, group in enumerate(self.config.groups):
            size, lengths = group.block_size, list[int]()
            if group.recurrent:
                lengths += [start] if start % size == 0 else []
                lengths += [end] if end % size == 0 or end == tail else []
            else:
                lengths += range((done // size + 1) * size, end + 1, size)
                lengths += [tail] if tail % size and end // size == tail // size else []
            for length in lengths:
                if done < length <= end:
                    block = r.tables[g][(length - 1) // size]
                    key = GroupId(g), r.prefix.digest_at(length)
                    self.pool.publish(block, key, length)
        r.registered = max(done, end)

    # --- the pass -------------------------------------------------------------------------------

    @passes
    def begin_step(self) -> ev.Done:
        """A pass begins."""
        self.chunks = {}
        return ev.Done()

    @passes
    def take_zeroing(self) -> ev.Zeroing:
        """Blocks to zero in this step; those that were given up again are left out."""
        blocks = tuple(block for block in self.to_zero if self.pool.refs[block])
        self.to_zero = []
        return ev.Zeroing(blocks)

    @passes
    def take_copies(self) -> ev.Copies:
        """The queued copies; their endpoints keep a reference until released."""
        copies, self.copies = self.copies, []
        ends = [end for pair in copies for end in pair]
        if ends:
            self.retained.append((self.step + 1, ends))
        return ev.Copies(tuple(copies), tuple(ends))

    @passes
    def take_offloads(self) -> ev.Offloads:
        """What is handed to the connector; each block is pinned."""
        offloads: dict[RequestId, tuple[Offer, ...]] = {}
        for request, r in self.requests.items():
            if r.offers:
                offloads[request] = tuple(r.offers)
                for _, block, _ in r.offers:
                    self.pool.hold(block)
                    r.pins.append(block)
                r.offers = []
        return ev.Offloads(offloads)

    @passes
    def end_step(self) -> ev.Dispatched:
        """Dispatch what was granted; computed tokens advance."""
        self.step += 1
        for request, (end, _) in self.chunks.items():
            r = self.requests[request]
            r.computed = min(end, len(r.prefix))
            r.last_step = self.step
        self.chunks = {}
        return ev.Dispatched(Step(self.step))

    @passes
    def execute(self) -> ev.Done:
        """The worker's business."""
        return ev.Done()

    @passes
    def process(self) -> ev.Done:
        """A step's output arrives: what waited behind it is freed."""
        self.processed += 1
        reached = [blocks for fence, blocks in self.fenced if fence <= self.processed]
        self.fenced = [(fence, blocks) for fence, blocks in self.fenced if fence > self.processed]
        for blocks in reached:
            self.pool.drop(blocks)
        return ev.Done()

    @passes
    def release_retained(self, fence: Step) -> ev.Released:
        """Release endpoints of copies up to the fence: now, or when it is reached."""
        ends = [end for step, blocks in self.retained if step <= fence for end in blocks]
        self.retained = [(step, blocks) for step, blocks in self.retained if step > fence]
        ends.reverse()
        at_once = not self.config.deferral or fence <= self.processed
        self._release(ends, fence)
        return ev.Released(tuple(ends) if at_once else ())

    def _release(self, blocks: list[BlockId], fence: int) -> None:
        """Free blocks in this order; behind the fence when a step in flight may touch them."""
        blocks = [block for block in blocks if block != NULL_BLOCK]
        if blocks and self.config.deferral and fence > self.processed:
            self.fenced.append((fence, blocks))
        else:
            self.pool.drop(blocks)

    # --- the end of a request -------------------------------------------------------------------

    @passes
    def finish(self, request: RequestId) -> ev.Done:
        """A request is done: its blocks and pins go back, tails first."""
        self._take_back(self.requests.pop(request))
        return ev.Done()

    @passes
    def abort(self, request: RequestId) -> ev.Done:
        """To the cache the same as `finish`."""
        return self.finish(request)

    @passes
    def preempt(self, request: RequestId) -> ev.Done:
        """The request waits again, with nothing computed."""
        r = self.requests[request]
        self._take_back(r)
        self._wait(request, r)
        return ev.Done()

    @passes
    def withdraw(self, request: RequestId) -> ev.Done:
        """The chunk granted in this step will never run: what it promised must not be found."""
        r = self.requests[request]
        self.chunks.pop(request, None)
        for table in r.tables:
            for block in table:
                if block in self.pool.keys and self.pool.keys[block][1] > r.computed:
                    self.pool.unpublish(block)
        return self.preempt(request)

    def _take_back(self, r: Request) -> None:
        self._forget_zeroing(self._tail_first(r))
        self._release(self._tail_first(r), r.last_step)
        self.pool.drop(r.pins)
        r.pins = []

    def _forget_zeroing(self, gone: list[BlockId]) -> None:
        """The next step has no business with blocks that leave their only holder."""
        alone = [block for block in gone if self.pool.refs[block] == 1]
        self.to_zero = [block for block in self.to_zero if block not in alone]

    def _tail_first(self, r: Request) -> list[BlockId]:
        return [block for table in r.tables for block in reversed(table) if block != NULL_BLOCK]

    def _wait(self, request: RequestId, r: Request) -> None:
        self.requests[request] = Request(r.prefix, r.num_prompt_tokens, last_step=r.last_step)

    @passes
    def detach(self, request: RequestId) -> ev.Detached:
        """Take blocks and pins off the request and hold on to them."""
        r = self.requests[request]
        blocks = [block for table in r.tables for block in table if block != NULL_BLOCK]
        self._forget_zeroing(blocks)
        old_blocks, old_pins, old_fence = self.detached.get(request, ([], [], 0))
        fence = max(old_fence, r.last_step)
        self.detached[request] = old_blocks + blocks, old_pins + r.pins, fence
        self._wait(request, r)
        return ev.Detached(tuple(r.pins + blocks))

    @passes
    def free_detached(self, request: RequestId) -> ev.Done:
        """Free what was detached, tails first, and drop its pins."""
        blocks, pins, fence = self.detached.pop(request)
        self._release(blocks[::-1], fence)
        self.pool.drop(pins)
        return ev.Done()

    # --- the connector --------------------------------------------------------------------------

    @passes
    def offload_read(self, request: RequestId) -> ev.Done:
        """The connector's business."""
        return ev.Done()

    @passes
    def offload_done(self, request: RequestId) -> ev.Done:
        """The pins stay until the blocks are freed."""
        return ev.Done()

    @passes
    def load_external(self, request: RequestId, ok: bool) -> ev.Done:
        """External tokens arrived, or the request falls back to its local hit."""
        r = self.requests[request]
        r.loading = False
        if not ok:
            self.chunks.pop(request, None)
            for group, table in zip(self.config.groups, r.tables, strict=True):
                kept = ceil_div(r.local, group.block_size)
                if group.recurrent:
                    self._forget_zeroing([b for b in table[kept:] if b != NULL_BLOCK])
                    self._release(table[kept:][::-1], r.last_step)
                    del table[kept:]
                elif group.zeroed:
                    self.to_zero += table[kept : ceil_div(r.computed, group.block_size)]
            r.computed = r.local
        return ev.Done()

    # --- the prefix cache -----------------------------------------------------------------------

    @passes
    def evict(self, blocks: Table) -> ev.Done:
        """Drop the keys of blocks."""
        for block in blocks:
            self.pool.unpublish(block)
        return ev.Done()

    @passes
    def reset(self) -> ev.ResetDone:
        """Drop all keys, if nothing is held."""
        if any(self.pool.refs):
            return ev.ResetDone(False)
        for block in list(self.pool.keys):
            self.pool.unpublish(block)
        return ev.ResetDone(True)

    # --- questions ------------------------------------------------------------------------------

    @passes
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
        lengths = start, wanted, num_prompt_tokens, num_tokens, block_size, hash_unit
        chunk = ev.Chunk(*lengths, budget, cap, fine, eagle, boundary)
        return ev.ChunkLength(chunk_length(chunk))

    def snapshot(self) -> ev.Books:
        """All books."""
        keys: dict[BlockId, tuple[tuple[GroupId, str], ...]] = {}
        for (group_id, digest), blocks in self.pool.index.items():
            for block in blocks:
                keys[block] = (*keys.get(block, ()), (group_id, digest.hex()))
        pins = [block for r in self.requests.values() for block in r.pins]
        pins += [block for _, held, _ in self.detached.values() for block in held]
        return ev.Books(
            refcounts={BlockId(b): n for b, n in enumerate(self.pool.refs) if n},
            free_list=tuple(self.pool.free_list),
            keys=dict(sorted(keys.items())),
            pins=tuple(sorted(pins)),
            tables={name: self._table(r) for name, r in self.requests.items() if r.tables},
        )

    def _table(self, r: Request) -> Tables:
        return _frozen(r.tables) if r.tables else ((),) * len(self.config.groups)


def _frozen(blocks: list[list[BlockId]]) -> Tables:
    return tuple(tuple(table) for table in blocks)
