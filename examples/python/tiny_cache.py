"""A block manager of the size that one writes in an afternoon: the subject of docs/adapter.md.

Full attention only. It knows nothing of kvspec; `tiny_adapter.py` holds the two together.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


@dataclass
class Sequence:
    """A request: its tokens, its blocks, and how many tokens are computed."""

    tokens: list[int]
    blocks: list[int] = field(default_factory=list)
    computed: int = 0
    scheduled: int = 0
    keyed: int = 0


class TinyCache:
    """Blocks of `block_size` tokens; block 0 is a placeholder that nobody gets."""

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.block_size = block_size
        self.free = list(range(1, num_blocks))
        self.refs = [0] * num_blocks
        self.key_of: dict[int, bytes] = {}
        self.block_of: dict[bytes, int] = {}

    def keys(self, tokens: list[int]) -> list[bytes]:
        """One key for each full block: it names all tokens up to the block's end."""
        found, last = [], b""
        for start in range(0, len(tokens) - self.block_size + 1, self.block_size):
            block = ",".join(map(str, tokens[start : start + self.block_size]))
            last = hashlib.sha256(last + block.encode()).digest()
            found.append(last)
        return found

    def match(self, tokens: list[int]) -> list[int]:
        """The cached blocks of a prefix; the last token is always computed."""
        blocks = []
        for key in self.keys(tokens[:-1]):
            if key not in self.block_of:
                break
            blocks.append(self.block_of[key])
        return blocks

    def extend(self, seq: Sequence, hit: list[int], num_tokens: int) -> bool:
        """Blocks for `num_tokens` more tokens behind a hit, or nothing changes."""
        start = seq.computed or len(hit) * self.block_size
        end = start + num_tokens
        num_new = max(-(-end // self.block_size) - len(seq.blocks) - len(hit), 0)
        num_idle = sum(self.refs[block] == 0 for block in hit)
        if num_new + num_idle > len(self.free):
            return False
        for block in hit:
            if self.refs[block] == 0:
                self.free.remove(block)
            self.refs[block] += 1
        seq.blocks += hit + [self._take() for _ in range(num_new)]
        seq.computed, seq.scheduled = start, end
        seq.keyed = max(seq.keyed, len(hit))
        self._publish(seq, min(end, len(seq.tokens)))
        return True

    def _take(self) -> int:
        block = self.free.pop(0)
        self.refs[block] = 1
        self.unpublish(block)
        return block

    def _publish(self, seq: Sequence, end: int) -> None:
        """Blocks that the granted tokens complete can be found from now on."""
        keys = self.keys(seq.tokens[:end])
        for key, block in list(zip(keys, seq.blocks, strict=False))[seq.keyed :]:
            self.key_of[block] = key
            self.block_of.setdefault(key, block)
        seq.keyed = max(seq.keyed, len(keys))

    def unpublish(self, block: int) -> None:
        """A block loses its key; a twin with the same content takes its place."""
        key = self.key_of.pop(block, None)
        if key is not None and self.block_of[key] == block:
            del self.block_of[key]
            twins = [other for other, its in self.key_of.items() if its == key]
            if twins:
                self.block_of[key] = twins[0]

    def release(self, seq: Sequence) -> None:
        """All blocks of a request go back, tails first, to be taken last."""
        for block in reversed(seq.blocks):
            self.refs[block] -= 1
            if self.refs[block] == 0:
                self.free.append(block)
        seq.blocks, seq.computed, seq.scheduled, seq.keyed = [], 0, 0, 0
