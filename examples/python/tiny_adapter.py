"""The adapter between kvspec and `tiny_cache`: docs/adapter.md writes it step by step.

kvspec check --target tiny_adapter:TinyAdapter
"""

from __future__ import annotations

from typing import Any

from tiny_cache import Sequence, TinyCache

from kvspec.adapter import Adapter, Unsupported
from kvspec.spec import events as ev


class TinyAdapter(Adapter):
    """One method for each event that the cache knows."""

    name, version = "tiny", "1.0"
    shows = ev.SHOWABLE
    lacks = (
        "recurrent_groups",
        "several_groups",
        "eagle",
        "zeroed",
        "uniform_connector",
        "diverging_connector",
        "deferral",
        "several_in_flight",
        "salt",
        "adapter",
        "media",
        "lookahead_tokens",
        "delay_caching",
    )

    def open(self, config: Any) -> None:
        if not config.caching:
            raise Unsupported("the cache cannot be switched off")
        self.cache = TinyCache(config.num_blocks, config.groups[0].block_size)
        self.seqs: dict[str, Sequence] = {}
        self.hit: tuple[str, list[int]] = ("", [])

    def submit(self, request: Any, tokens: Any, salt: Any, adapter: Any, media: Any) -> None:
        self.seqs[request] = Sequence(list(tokens))

    def append(self, request: Any, tokens: Any) -> None:
        self.seqs[request].tokens += tokens

    def lookup(self, request: Any) -> Any:
        blocks = self.cache.match(self.seqs[request].tokens)
        self.hit = (request, blocks)
        return ev.Hit((blocks,), len(blocks) * self.cache.block_size)

    def allocate(
        self, request: Any, num_new_tokens: int, external: int, lookahead: int, delay: bool
    ) -> Any:
        if num_new_tokens == 0:
            raise ev.Rejected("a grant of nothing")
        seq = self.seqs[request]
        hit = self.hit[1] if self.hit[0] == request and not seq.blocks else []
        self.hit = ("", [])
        known = len(seq.blocks)
        granted = self.cache.extend(seq, hit, num_new_tokens)
        new = seq.blocks[known + len(hit) :] if granted else []
        return ev.Grant(granted, (new,), (list(seq.blocks),))

    def end_step(self) -> Any:
        for seq in self.seqs.values():
            if seq.scheduled:
                seq.computed, seq.scheduled = min(seq.scheduled, len(seq.tokens)), 0
        return super().end_step()

    def preempt(self, request: Any) -> None:
        self.cache.release(self.seqs[request])

    def finish(self, request: Any) -> None:
        self.cache.release(self.seqs.pop(request))

    def evict(self, blocks: Any) -> None:
        for block in blocks:
            self.cache.unpublish(block)

    def snapshot(self) -> Any:
        cache = self.cache
        return ev.Books(
            refcounts={block: n for block, n in enumerate(cache.refs) if n},
            free_list=list(cache.free),
            keys={block: [(0, key.hex())] for block, key in cache.key_of.items()},
            pins=(),
            tables={name: (seq.blocks,) for name, seq in self.seqs.items() if seq.blocks},
        )
