"""Faults of LIVE and of what lies between the families: answers, order, other choices."""

from __future__ import annotations

from kvspec.mutants.load import Edit
from kvspec.mutants.model import Mutant

M, P, F, G = "manager", "pool", "free_list", "grants"

MUTANTS = [
    Mutant(
        "live-evict-rejected",
        "LIVE.ANSWER",
        "evicting a block that has no key is taken for an error",
        (
            Edit(
                M,
                "            if not 0 < block < len(self.pool.refs):\n",
                "            if not self.pool.index.length_of[block]:\n"
                '                raise ev.Rejected("no key")\n'
                "            if not 0 < block < len(self.pool.refs):\n",
            ),
        ),
        ("F7",),
    ),
    Mutant(
        "live-lookup-raises",
        "LIVE.ANSWER",
        "a lookup raises where groups hit different lengths",
        (
            Edit(
                "lookup",
                "                if self.lengths[g] < length:\n",
                "                if self.lengths[g] < length:\n"
                "                    if self.lengths[g]:\n"
                '                        raise AssertionError("the groups disagree")\n',
            ),
        ),
        ("C11", "F7"),
    ),
    Mutant(
        "live-grant-rejected",
        "LIVE.ANSWER",
        "a grant that the pool has no room for is taken for an error",
        (
            Edit(
                G,
                "        if need > self.pool.free.count:\n",
                "        if need > self.pool.free.count:\n"
                "            from kvspec.spec.events import Rejected\n\n"
                '            raise Rejected("no room")\n',
            ),
        ),
        ("G1",),
    ),
    Mutant(
        "live-stale-lookup",
        "TABLE.SHAPE",
        "a lookup counts for a later grant although other events came between",
        (
            Edit(
                M,
                "        asked, self.asked = self.asked, None\n",
                "        asked, self.asked = request if self.found else None, None\n",
            ),
        ),
        ("A3",),
        hidden=True,
    ),
    Mutant(
        "live-stale-hit",
        "TABLE.SHAPE",
        "a process in between does not make a lookup stale",
        (
            Edit(
                M,
                "        self.asked = None\n        self.fences.process()\n",
                "        self.fences.process()\n",
            ),
        ),
        ("A3",),
        hidden=True,
    ),
    Mutant(
        "exact-oldest-first",
        "LIVE.EXACT",
        "keyed blocks are taken before unkeyed ones",
        (
            Edit(
                P,
                "            self.free.push_front_many(bare)\n",
                "            self.free.push_back_many(bare)\n",
            ),
        ),
        exact=True,
    ),
    Mutant(
        "exact-newest-copy",
        "LIVE.EXACT",
        "of several copies of a key the newest is hit",
        (
            Edit(
                "lookup",
                "                self.runs[g] = [block]\n",
                "                self.runs[g] = [self.index.copies(g, self.digests[at])[-1]]\n",
            ),
        ),
        exact=True,
    ),
]
