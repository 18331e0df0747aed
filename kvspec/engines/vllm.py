"""The target `vllm`: the manager of the vLLM that is installed, driven as its scheduler does.

The manager is vLLM's own, and so is every method of the scheduler that belongs to it: the chunk
rule, preemption, deferred frees, what becomes of a load. The scheduler is made without its model,
workers and queues; `_scheduler` says what stands in their place. No GPU is needed.
"""

from __future__ import annotations

import json
import os
from collections import deque
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from kvspec.adapter import Adapter, Rejected, Unsupported
from kvspec.spec import events as ev
from kvspec.spec.types import (
    NULL_BLOCK,
    BlockId,
    Config,
    Connector,
    GroupId,
    Media,
    RequestId,
    Step,
    Table,
    Tables,
    Token,
)
from kvspec.spec.types import Adapter as LoraAdapter

from .vllm_versions import Version, version_of

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("PYTHONHASHSEED", "0")  # its seed of all digests; another is drawn each time

try:
    import vllm
    from vllm.lora.request import LoRARequest
    from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange
    from vllm.sampling_params import SamplingParams
    from vllm.utils.hashing import sha256_cbor
    from vllm.v1.core import kv_cache_utils as utils
    from vllm.v1.core.kv_cache_manager import KVCacheManager
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.kv_cache_interface import (
        FullAttentionSpec,
        KVCacheConfig,
        KVCacheGroupSpec,
        MambaSpec,
    )
    from vllm.v1.request import Request, RequestStatus
except ImportError as error:
    raise ImportError(
        f"{error}; make engines makes an environment that has vLLM and what it needs"
    ) from error

import torch

SAMPLING = SamplingParams(max_tokens=1)
utils.init_none_hash(sha256_cbor)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a lookup found; `view` is what was cut of it last."""

    request: RequestId
    blocks: Any
    num_tokens: int
    boundary: int
    view: Any


@dataclass(slots=True)
class Detached:
    """What was taken off a request and is still held, and which of it is pinned."""

    fence: int = 0
    blocks: list[Any] = field(default_factory=list)
    pins: list[BlockId] = field(default_factory=list)


class Vllm(Adapter):
    """vLLM's manager.

    A configuration that vLLM is not made for is declined: one group whose block is not the hash
    unit, recurrent groups of several block sizes, zeroing of recurrent blocks, zeroing without
    recurrent groups. A chunk that its scheduler would have cut shorter is not sent.

    Steps are not run ahead of each other: states of the steps in flight are then kept longer than
    the event language has it.
    """

    name = "vllm"
    version = vllm.__version__
    shows = ev.SHOWABLE
    lacks = ("several_in_flight",)
    reloads_adapters = False
    """Whether another version of an adapter keeps its name, as one that is reloaded in place."""

    def open(self, config: Config) -> None:
        """A manager for this cache, and the scheduler around it."""
        self.knows: Version = version_of(self.version)
        self.cache = _cache_config(config)
        self.manager: Any = KVCacheManager(
            kv_cache_config=self.cache,
            max_model_len=config.max_model_len,
            scheduler_block_size=config.scheduler_block,
            hash_block_size=config.hash_unit,
            enable_caching=config.caching,
            use_eagle=any(g.eagle for g in config.groups),
        )
        self.scheduler: Any = _scheduler(self.manager, self.cache, config)
        self.hasher = utils.get_request_block_hasher(config.hash_unit, sha256_cbor)
        self.requests: dict[RequestId, Any] = {}
        self.local: dict[RequestId, int] = {}
        self.granted: dict[RequestId, int] = {}
        self.in_flight: deque[list[tuple[Any, int]]] = deque()
        self.retained: deque[tuple[int, list[Any]]] = deque()
        self.detached: dict[RequestId, Detached] = {}
        self.asked: Asked | None = None

    def configure(self, config: Config) -> ev.Capabilities:
        """Decline what vLLM is not made for."""
        unit, groups = config.hash_unit, config.groups
        if config.caching and len(groups) == 1 and groups[0].block_size != unit:
            raise Unsupported("with one group the hash unit is the block")
        if len({g.block_size for g in groups if g.recurrent}) > 1:
            raise Unsupported("recurrent groups have one block size")
        if not config.fine and len({g.block_size for g in groups}) > 1:
            raise Unsupported("without partial hits, keys come by the scheduler's block")
        if any(g.zeroed and g.recurrent for g in groups):
            raise Unsupported("recurrent blocks are not zeroed")
        if any(g.zeroed for g in groups) and not any(g.recurrent for g in groups):
            raise Unsupported("blocks are zeroed only where there are recurrent groups")
        shown = super().configure(config)
        lacks = (*shown.lacks, *self.knows.lacks)
        return ev.Capabilities(shown.name, shown.version, shown.shows, lacks)

    # --- requests -------------------------------------------------------------------------------

    def submit(
        self,
        request: RequestId,
        tokens: tuple[Token, ...],
        salt: str | None = None,
        adapter: LoraAdapter | None = None,
        media: tuple[Media, ...] = (),
    ) -> None:
        """A request of vLLM's, with its digests."""
        if salt == "":
            raise Unsupported("an empty salt is none")
        items = sorted(media, key=lambda item: item.start)
        for one, following in pairwise(items):
            if one.start + one.length > following.start:
                raise Unsupported("media items do not overlap")
        self.asked = None
        self.requests[request] = Request(
            request,
            list(tokens),
            SAMPLING,
            None,
            arrival_time=0.0,
            lora_request=self._lora(adapter),
            cache_salt=salt,
            mm_features=[
                MultiModalFeatureSpec(
                    data=None,
                    modality="image",
                    identifier=json.dumps([item.content, item.length]),
                    mm_position=PlaceholderRange(offset=item.start, length=item.length),
                )
                for item in items
            ],
            block_hasher=self.hasher,
        )

    def _lora(self, adapter: LoraAdapter | None) -> Any:
        """An adapter as vLLM is told of it; two versions have two names, unless reloaded."""
        if adapter is None:
            return None
        version = 0 if self.reloads_adapters else adapter.version
        name = json.dumps([adapter.name, version]) if version else adapter.name
        return LoRARequest(name, adapter.version + 1, "adapter")

    def append(self, request: RequestId, tokens: tuple[Token, ...]) -> None:
        """Sampled tokens; digests grow."""
        self.asked = None
        self.requests[request].append_output_token_ids(list(tokens))

    def finish(self, request: RequestId) -> None:
        """Free its blocks as the scheduler does."""
        self.asked = None
        self.granted.pop(request, None)
        one = self.requests.pop(request)
        one.status = RequestStatus.FINISHED_STOPPED
        self.scheduler._free_request_blocks(one)

    def preempt(self, request: RequestId) -> None:
        """Preempt it as the scheduler does."""
        self.asked = None
        self.granted.pop(request, None)
        one = self.requests[request]
        one.status = RequestStatus.RUNNING
        self.scheduler._preempt_request(one, 0.0)

    def withdraw(self, request: RequestId) -> None:
        """To the scheduler the same: its chunk is taken out of the step."""
        self.preempt(request)

    def detach(self, request: RequestId) -> ev.Detached:
        """Take blocks off the request, pins first."""
        self.asked = None
        self.granted.pop(request, None)
        one = self.requests[request]
        held = self.detached.setdefault(request, Detached())
        held.pins += self._pins().get(request, [])
        blocks = self.manager.pop_blocks_for_free(one)
        held.blocks += blocks
        held.fence = max(held.fence, one.last_sched_seq)
        one.status, one.num_computed_tokens = RequestStatus.WAITING, 0
        return ev.Detached(_ids(blocks))

    def free_detached(self, request: RequestId) -> None:
        """Free what was detached, behind the fence where there is one."""
        self.asked = None
        held = self.detached.pop(request)
        if self._waits(held.fence):
            self.scheduler.deferred_frees.append((held.fence, held.blocks))
        else:
            self.manager.block_pool.free_blocks(reversed(held.blocks))

    def _waits(self, fence: int) -> bool:
        """Whether what stands behind this fence is not freed yet."""
        return self.config.deferral and fence > self.scheduler.processed_step_seq

    # --- hits and grants ------------------------------------------------------------------------

    def lookup(self, request: RequestId) -> ev.Hit:
        """The joint hit."""
        blocks, length, boundary = self.manager.get_computed_blocks(self.requests[request])
        self.asked = Asked(request, blocks, length, boundary, blocks)
        return ev.Hit(_tables(blocks), length, boundary)

    def lookup_for_connector(self, request: RequestId) -> ev.ConnectorHit:
        """The hit as a connector is told it: only one that can diverge is told another."""
        if self.config.connector is not Connector.DIVERGING:
            hit = self.lookup(request)
            return ev.ConnectorHit(hit.blocks, hit.num_tokens, hit.shared_prefix_boundary)
        found = self.manager.get_computed_blocks_for_connector(self.requests[request])
        blocks, length, boundary, diverged = found
        self.asked = Asked(request, blocks, length, boundary, blocks)
        return ev.ConnectorHit(_tables(blocks), length, boundary, diverged)

    def truncate(self, request: RequestId, num_tokens: int) -> ev.View:
        """A view of the hit that was found directly before."""
        assert self.asked is not None
        try:
            view = self.manager.truncate_computed_blocks(self.asked.blocks, num_tokens)
        except AssertionError:
            raise Rejected("vLLM asserts that a view ends a block and is covered") from None
        self.asked = replace(self.asked, num_tokens=num_tokens, view=view)
        return ev.View(_tables(view))

    def allocate(
        self,
        request: RequestId,
        num_new_tokens: int,
        num_external_tokens: int = 0,
        num_lookahead_tokens: int = 0,
        delay_caching: bool = False,
    ) -> ev.Grant:
        """Slots for more tokens. External tokens come by a load that runs beside the steps."""
        asked, self.asked = self.asked, None
        one, before = self.requests[request], self._table(request)
        first = not any(before)
        blocks, local = None, 0
        if first and asked is not None and asked.request == request:
            blocks, local = asked.view, asked.num_tokens
            one.shared_prefix_boundary = asked.boundary
            before = _tables(blocks)
        if self.knows.adopts and not num_new_tokens and not num_external_tokens:
            raise Rejected("its scheduler asks for no such grant")
        self._require_whole_chunk(one, local + num_external_tokens, num_new_tokens)
        loads = num_external_tokens > 0
        more = {"skip_zeroing_group_ids": tuple(self.config.ids())} if loads else {}
        queued = self._copies()
        try:
            slots = self.manager.allocate_slots(
                one,
                num_new_tokens,
                num_new_computed_tokens=local,
                new_computed_blocks=blocks,
                num_lookahead_tokens=num_lookahead_tokens,
                num_external_computed_tokens=num_external_tokens,
                delay_cache_blocks=delay_caching or loads,
                **(more if self.knows.skips_zeroing else {}),
            )
        except ValueError as error:
            raise Rejected(str(error)) from None
        table = self._table(request)
        if slots is None:
            return ev.Grant(False, ((),) * len(table), table)
        new_blocks = _tables(slots)
        if first:
            new_blocks = tuple(map(_new_in, before, table))
            one.num_computed_tokens = local + num_external_tokens
            self.local[request] = local
            one.status = RequestStatus.RUNNING
            self._skip_zeroing(request, local, num_external_tokens)
        if num_new_tokens:
            self.granted[request] = num_new_tokens
        copies = tuple(pair for pair in self._copies() if pair not in queued)
        return ev.Grant(True, new_blocks, table, copies)

    def _require_whole_chunk(self, one: Any, resumed: int, num_new_tokens: int) -> None:
        """With recurrent groups the scheduler cuts chunks where states are kept."""
        sizes = {g.block_size for g in self.config.groups if g.recurrent}
        if not sizes or not num_new_tokens:
            return
        start = one.num_computed_tokens + resumed
        cut = self.chunk(
            start,
            num_new_tokens,
            one.num_prompt_tokens,
            one.num_tokens,
            sizes.pop(),
            self.config.hash_unit,
            budget=num_new_tokens,
            fine=self.config.fine,
            eagle=any(g.eagle for g in self.config.groups),
        ).num_tokens
        if cut < num_new_tokens:
            raise Unsupported(f"its scheduler cuts the chunk to {cut} tokens")

    def _skip_zeroing(self, request: RequestId, local: int, external: int) -> None:
        """What a load will write is not zeroed in this step."""
        if external and not self.knows.skips_zeroing and self.cache.needs_kv_cache_zeroing:
            loaded = self.manager.get_zeroing_block_ids_in_range(request, local, local + external)
            self.scheduler._skip_zero_block_ids.update(loaded)

    def _copies(self) -> list[tuple[BlockId, BlockId]]:
        """The copies queued so far, by group."""
        managers = self.manager.coordinator.single_type_managers
        return [
            (BlockId(source.block_id), BlockId(destination.block_id))
            for manager in managers
            for source, destination in manager._pending_cow_copies
        ]

    # --- the step -------------------------------------------------------------------------------

    def begin_step(self) -> None:
        """A pass begins."""
        self.asked = None
        self.granted.clear()
        self.manager.new_step_starts()

    def take_zeroing(self) -> ev.Zeroing:
        """What the scheduler has zeroed."""
        self.asked = None
        return ev.Zeroing(tuple(map(BlockId, self.scheduler._get_new_block_ids_to_zero() or ())))

    def take_copies(self) -> ev.Copies:
        """Copies of this step; their endpoints wait for `release_retained`."""
        self.asked = None
        copies, retained = self.manager.take_kv_cache_block_copies()
        if retained:
            self.retained.append((self.scheduler.sched_step_seq + 1, retained))
        pairs = tuple((BlockId(c.src_block_id), BlockId(c.dst_block_id)) for c in copies)
        return ev.Copies(pairs, _ids(retained))

    def take_offloads(self) -> ev.Offloads:
        """Hand-offs, where there is a connector to take them."""
        self.asked = None
        if self.config.connector is Connector.NONE:
            return ev.Offloads({})
        found = self.manager.take_partial_tail_offloads()
        return ev.Offloads(
            {
                RequestId(name): tuple((GroupId(g), BlockId(b), n) for g, b, n in offers)
                for name, offers in found.items()
            }
        )

    def end_step(self) -> ev.Dispatched:
        """Computed tokens advance, as after a pass of the scheduler."""
        self.asked = None
        self.scheduler.sched_step_seq += 1
        dispatched = []
        for request, num_tokens in self.granted.items():
            one = self.requests[request]
            advanced = min(one.num_computed_tokens + num_tokens, one.num_tokens)
            one.num_computed_tokens = advanced
            one.num_in_flight_tokens += num_tokens
            one.last_sched_seq = self.scheduler.sched_step_seq
            dispatched.append((one, num_tokens))
        self.granted.clear()
        self.in_flight.append(dispatched)
        return super().end_step()

    def process(self) -> None:
        """Output arrives: what waited behind this step is freed."""
        self.asked = None
        self.scheduler.processed_step_seq += 1
        for one, num_tokens in self.in_flight.popleft():
            one.num_in_flight_tokens -= num_tokens
        self.scheduler._drain_deferred_frees()

    def release_retained(self, fence: Step) -> ev.Released:
        """Release endpoints of copies as the scheduler does after it drained them."""
        self.asked = None
        released: list[Any] = []
        while self.retained and self.retained[0][0] <= fence:
            step, blocks = self.retained.popleft()
            self.scheduler._free_cow_retained_blocks(blocks, step)
            if not self._waits(step):
                released += blocks
        return ev.Released(_ids(released))

    # --- the connector, the prefix cache, questions ---------------------------------------------

    def load_external(self, request: RequestId, ok: bool) -> None:
        """A load ends, or fails: then the request falls back to its local hit.

        vLLM keys what arrived at once; here it is keyed by the next grant, as the language has it.
        """
        self.asked = None
        if ok:
            return
        one, local = self.requests[request], self.local[request]
        if len(self.config.groups) > 1:
            raise Unsupported("a load into several groups cannot fail in part")
        if not local:
            raise Unsupported("a request that keeps no token gives its blocks back, and is new")
        one.num_computed_tokens = local
        self.scheduler.failed_recving_kv_req_ids.add(request)
        self.scheduler.finished_recving_kv_req_ids.add(request)
        self.scheduler._update_waiting_for_remote_kv(one)

    def evict(self, blocks: tuple[BlockId, ...]) -> None:
        """Drop the keys of blocks."""
        self.asked = None
        if BlockId(0) in blocks:
            raise Rejected("no worker reports the null block")
        try:
            self.manager.evict_blocks(set(blocks))
        except AssertionError as error:
            raise Rejected(str(error)) from None

    def reset(self) -> ev.ResetDone:
        """Drop every key, if nothing is held."""
        self.asked = None
        return ev.ResetDone(self.manager.reset_prefix_cache())

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
        """The scheduler's rule for chunks of a model with recurrent states."""
        self.asked = None
        scheduler = object.__new__(Scheduler)
        scheduler.cache_config = SimpleNamespace(block_size=block_size)
        scheduler.scheduler_config = SimpleNamespace(long_prefill_token_threshold=cap)
        scheduler.max_num_scheduled_tokens = budget
        scheduler.use_eagle = scheduler.use_eagle_block_drop = eagle
        scheduler.hash_block_size, scheduler.block_size = hash_unit, block_size
        scheduler.mamba_partial_cache_hit = fine
        scheduler.num_hash_lookahead_tokens = 0
        scheduler.mamba_has_prefill_checkpoint_blocks = False
        scheduler.mamba_prefill_checkpoint_alignment = 1
        scheduler.mamba_shared_prefix_checkpoint = False
        request = SimpleNamespace(
            num_computed_tokens=start,
            num_prompt_tokens=num_prompt_tokens,
            num_tokens=num_tokens,
            shared_prefix_boundary=boundary,
        )
        return ev.ChunkLength(scheduler._mamba_block_aligned_split(request, wanted))

    def snapshot(self) -> ev.Books:
        """All books of the manager."""
        pool = self.manager.block_pool
        pins = [pin for held in self._pins().values() for pin in held]
        pins += [pin for held in self.detached.values() for pin in held.pins]
        tables = {name: self._table(name) for name in self.requests}
        return ev.Books(
            refcounts={
                BlockId(b.block_id): b.ref_cnt for b in pool.blocks if b.ref_cnt and not b.is_null
            },
            free_list=_ids(pool.free_block_queue.get_all_free_blocks()),
            keys={BlockId(b.block_id): keys for b in pool.blocks if (keys := _keys(pool, b))},
            pins=tuple(sorted(pins)),
            tables={name: table for name, table in tables.items() if any(table)},
        )

    def _pins(self) -> dict[RequestId, list[BlockId]]:
        """Blocks that the manager pins for a connector, where it does."""
        pins = getattr(self.manager, "_partial_tail_pins", {})
        return {RequestId(name): list(_ids(blocks)) for name, blocks in pins.items()}

    def _table(self, request: RequestId) -> Tables:
        return _tables(self.manager.get_blocks(request))


class ReloadedAdapters(Vllm):
    """vLLM where new weights of an adapter are loaded in place, under the name it had."""

    reloads_adapters = True


def _cache_config(config: Config) -> Any:
    """The cache as vLLM is told of it; no two groups have the same shape, so none are merged."""
    groups = []
    for g, group in enumerate(config.groups, start=1):
        if group.recurrent:
            spec = MambaSpec(
                block_size=group.block_size,
                shapes=((g,),),
                dtypes=(torch.float32,),
                mamba_cache_mode="align",
            )
        else:
            spec = FullAttentionSpec(
                block_size=group.block_size, num_kv_heads=1, head_size=g, dtype=torch.float32
            )
        groups.append(KVCacheGroupSpec([f"layer{g}"], spec, is_eagle_group=group.eagle))
    return KVCacheConfig(config.num_blocks, kv_cache_tensors=[], kv_cache_groups=groups)


def _scheduler(manager: Any, cache: Any, config: Config) -> Any:
    """vLLM's scheduler with nothing around it but the manager and the counters of its steps."""
    scheduler = object.__new__(Scheduler)
    nothing = SimpleNamespace(free=lambda _: None, prepend_request=lambda _: None)
    scheduler.kv_cache_manager = manager
    scheduler.kv_cache_config = cache
    scheduler.defer_block_free = config.deferral
    scheduler.sched_step_seq = scheduler.processed_step_seq = 0
    scheduler.deferred_frees = deque()
    scheduler.needs_kv_cache_zeroing = cache.needs_kv_cache_zeroing
    scheduler._skip_zero_block_ids = set()
    scheduler.encoder_cache_manager = scheduler.waiting = nothing
    scheduler.connector = nothing
    scheduler.aux_output_connector = None
    scheduler.prefix_replay_tokens = 0
    scheduler.log_stats = False
    scheduler._inflight_prefills = set()
    scheduler._pending_encoder_input_ids = {}
    scheduler.reset_preempted_req_ids = set()
    scheduler.failed_recving_kv_req_ids = set()
    scheduler.finished_recving_kv_req_ids = set()
    return scheduler


def _new_in(hit: Table, table: Table) -> Table:
    """What a first grant brought into a table beside the hit."""
    known = len(hit)
    changed = [b for b, old in zip(table, hit, strict=False) if b not in (old, NULL_BLOCK)]
    return (*changed, *table[known:])


def _ids(blocks: Any) -> Table:
    return tuple(BlockId(b.block_id) for b in blocks if not b.is_null)


def _tables(blocks: Any) -> Tables:
    return tuple(tuple(map(BlockId, group)) for group in blocks.get_block_ids())


def _keys(pool: Any, block: Any) -> tuple[tuple[GroupId, str], ...]:
    """The keys under which a block can be found."""
    keys = set(pool.cached_block_hashes_by_block.get(block.block_id, ()))
    if block.block_hash is not None:
        keys.add(block.block_hash)
    return tuple(
        sorted(
            (GroupId(utils.get_group_id(key)), utils.get_block_hash(key).hex())
            for key in keys
            if pool.cached_block_hash_to_block.contain(key, block.block_id)
        )
    )
