"""Conforming managers: some choose otherwise than the reference, some cannot do everything."""

from __future__ import annotations

import random

from kvspec.reference.manager import Manager
from kvspec.reference.pool import Key, Pool
from kvspec.spec import events as ev
from kvspec.spec.types import BlockId, Config
from kvspec.targets import PROBE


class AnyBlock(Pool):
    """Takes any free block, keyed or not, and finds any of several copies, by chance."""

    def __init__(self, num_blocks: int, seed: int) -> None:
        super().__init__(num_blocks)
        self.chance = random.Random(seed)

    def take(self) -> BlockId:
        chosen = self.chance.randrange(len(self.free_list))
        self.free_list.insert(0, self.free_list.pop(chosen))
        return super().take()

    def find(self, key: Key) -> BlockId | None:
        return self.chance.choice(self.index[key]) if key in self.index else None


class ByChance(Manager):
    """The reference on such a pool."""

    seed = 0

    def configure(self, config: Config) -> ev.Capabilities:
        super().configure(config)
        self.pool = AnyBlock(config.num_blocks, self.seed)
        return ev.Capabilities("by chance", shows=ev.SHOWABLE)


class ByChance1(ByChance):
    seed = 1


class ByChance2(ByChance):
    seed = 2


class Lacking(Manager):
    """Knows no salt, no connector and no truncation."""

    def configure(self, config: Config) -> ev.Capabilities:
        super().configure(config)
        lacks = "salt", "diverging_connector", "truncate"
        return ev.Capabilities("lacking", shows=ev.SHOWABLE, lacks=lacks)


class Declining(Manager):
    """Is made for no cache but the one that is configured to hear what it can do."""

    def configure(self, config: Config) -> ev.Capabilities:
        if config != PROBE:
            raise ev.Rejected("not made for this")
        super().configure(config)
        return ev.Capabilities("declining", shows=ev.SHOWABLE)
