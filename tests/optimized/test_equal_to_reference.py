"""The fast manager answers every event as the plain one does, and the judge agrees with both."""

from __future__ import annotations

from collections import Counter

import pytest

from kvspec.spec import events as ev
from kvspec.spec.case import Ledger
from kvspec.spec.types import Config

from .walk import Walk

LEDGER, SENT = Ledger(), Counter[str]()

RARE = {
    "chunk stops at the tail", "copy-on-write by hitter", "copy-on-write by owner", "deferral",
    "diverged connector hit", "eviction", "failed external load", "fence outlives its request",
    "fence reached", "hand-off dies undrained", "hand-off offered", "hit leaves the free list",
    "partial entry", "partial hit", "promotion", "refusal", "rescue from the free list", "reset",
    "several groups copy at once", "truncation refused", "withdrawn chunk",
}  # fmt: skip
"""Every mark of the judge but "grant"."""


def test_random_walks_are_answered_alike_and_reach_every_rare_branch() -> None:
    ledger, sent = Ledger(), Counter[str]()
    for seed in range(100):
        Walk(seed, ledger, sent).go(100)
    assert not RARE - ledger.marks.keys()
    assert (
        not {kind.__name__ for kind in ev.ANSWERS if kind is not Config}
        - sent.keys()
        - {"Snapshot"}
    )


@pytest.mark.deep
def test_many_more_random_walks_are_answered_alike() -> None:
    for seed in range(1000, 3000):
        Walk(seed, Ledger(), Counter()).go(120)
