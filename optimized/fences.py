"""What waits until a step was processed before it may be freed (design 4.6)."""

from __future__ import annotations

from collections import deque

from .pool import Pool


class Fences:
    """Steps dispatched and processed, and the blocks that they keep from being freed.

    Step:  `dispatch`, `process`
    Free:  `release` (now or behind a fence), `retain`, `release_retained`
    Prove: `check`
    """

    __slots__ = ("deferral", "dispatched", "fenced", "pool", "processed", "retained")

    def __init__(self, pool: Pool, deferral: bool) -> None:
        """Nothing in flight. O(1)."""
        self.pool = pool
        self.deferral: bool = deferral
        self.dispatched: int = 0
        self.processed: int = 0
        self.retained: deque[tuple[int, list[int]]] = deque()
        self.fenced: dict[int, list[int]] = {}

    def dispatch(self) -> int:
        """One more step is in flight; its number. O(1)."""
        self.dispatched += 1
        return self.dispatched

    def process(self) -> None:
        """The oldest step is not in flight any more: free what waited for it. O(freed)."""
        self.processed += 1
        reached = self.fenced.pop(self.processed, None)
        if reached is not None:
            self.pool.drop_many(reached)

    def release(self, blocks: list[int], fence: int) -> bool:
        """Drop blocks in this order: now (True), or when the fence is reached. O(len(blocks)).

        >>> fences = Fences(Pool(4, 1), deferral=True)
        >>> held = fences.pool.take_many(2)
        >>> fences.release(held, fences.dispatch()), list(fences.pool.free)
        (False, [3])
        >>> fences.process(); list(fences.pool.free)
        [2, 1, 3]
        """
        if self.deferral and fence > self.processed:
            if blocks:
                self.fenced.setdefault(fence, []).extend(blocks)
            return False
        self.pool.drop_many(blocks)
        return True

    def retain(self, ends: list[int]) -> None:
        """Endpoints of copies of the next step keep the holder that they have. O(1)."""
        assert ends
        self.retained.append((self.dispatched + 1, ends))

    def release_retained(self, fence: int) -> list[int]:
        """Release endpoints up to a step, newest first; those dropped at once. O(released)."""
        ends: list[int] = []
        while self.retained and self.retained[0][0] <= fence:
            ends.extend(self.retained.popleft()[1])
        ends.reverse()
        return ends if self.release(ends, fence) else []

    def check(self) -> None:
        """Raise AssertionError, with every field, unless the representation is sound."""
        fields = f"{self.dispatched=} {self.processed=} {self.retained=} {self.fenced=}"
        # No step is processed before it was dispatched. O(1)
        assert 0 <= self.processed <= self.dispatched, f"fences: {fields}"
        # Endpoints stand in the order of their steps. O(retained)
        steps = [step for step, _ in self.retained]
        assert steps == sorted(steps), f"fences: {fields}"
        # What waits, waits for a step to come, and only with deferral. O(fenced)
        assert self.deferral or not self.fenced, f"fences: {fields}"
        assert all(fence > self.processed for fence in self.fenced), f"fences: {fields}"
        assert all(self.fenced.values()), f"fences: {fields}"
