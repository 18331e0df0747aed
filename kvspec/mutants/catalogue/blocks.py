"""Faults of ALLOC, REF, FREE and EVICT: who holds which block (design 4.3, 4.8)."""

from __future__ import annotations

from kvspec.mutants.load import Edit
from kvspec.mutants.model import REFERENCE, Mutant

G, M, P, F, S = "grants", "manager", "pool", "free_list", "step_lists"
HELD_FIRST = """        for table in plan.tables:
            self.pool.hold_many(table)
        self.pool.hold_many(plan.sources)
"""
FILLED = "table, fresh, source = plan.tables[g], plan.fresh[g], plan.sources[g]\n"
ROOM = "return need <= self.pool.free.count"
NEED = "need += len(fresh) + len(self.pool.unheld(table))"
SHOWN_COUNTS = "refcounts={BlockId(b): n for b, n in enumerate(self.pool.refs) if n},"
SHOWN_FREE = "free_list=cast(Table, tuple(self.pool.free)),"
TAILS = "[block for table in self.tables for block in table[::-1] if block]"

MUTANTS = [
    # --- which block ------------------------------------------------------------------------------
    Mutant(
        "alloc-null",
        "ALLOC.RANGE",
        "the last free block is handed out as the null block",
        (
            Edit(
                G,
                "        blocks = self.pool.take_many(count)\n",
                "        blocks = self.pool.take_many(count)\n"
                "        if blocks and not self.pool.free.count:\n"
                "            blocks[-1] = 0\n",
            ),
        ),
        ("F5",),
    ),
    Mutant(
        "alloc-off-by-one",
        "ALLOC.RANGE",
        "blocks are numbered from 2, books unseen",
        (
            Edit(
                M,
                "self.pool = Pool(config.num_blocks, self.layout.num_groups)",
                "self.pool = Pool(config.num_blocks + 1, self.layout.num_groups)\n"
                "        self.pool.take_many(1)",
            ),
            Edit(
                P,
                "return self.free.count == len(self.refs) - 1",
                "return self.free.count == len(self.refs) - 2",
            ),
        ),
        ("F5",),
        hidden=True,
    ),
    Mutant(
        "alloc-beyond-pool",
        "ALLOC.RANGE",
        "the pool has one block too many",
        (
            Edit(
                M,
                "self.pool = Pool(config.num_blocks, self.layout.num_groups)",
                "self.pool = Pool(config.num_blocks + 1, self.layout.num_groups)",
            ),
            Edit(
                M,
                SHOWN_FREE,
                "free_list=cast(Table, tuple(\n"
                "                [b for b in self.pool.free if b < len(self.pool.refs) - 1])),",
            ),
        ),
        ("F5",),
        hidden=True,
    ),
    Mutant(
        "alloc-freed-early",
        "ALLOC.FREE",
        "a block that two requests hold is free when the first of them ends",
        (
            Edit(
                "pool",
                "            if self.refs[block] == 0:\n                if block in",
                "            if self.refs[block] <= 1 and block not in self.free_list:\n"
                "                if block in",
            ),
        ),
        ("A5", "A1"),
        package=REFERENCE,
        hidden=True,
    ),
    Mutant(
        "alloc-twice",
        "ALLOC.FREE",
        "a grant that needs many blocks is handed one of them twice",
        (
            Edit(
                G,
                "        blocks = self.pool.take_many(count)\n",
                "        blocks = self.pool.take_many(count)\n"
                "        if count > 2:\n"
                "            blocks[-1] = blocks[0]\n",
            ),
        ),
        ("A5",),
    ),
    Mutant(
        "free-twice",
        "FREE.ONCE",
        "a release that names a block twice queues it twice",
        (
            Edit(
                "pool",
                """            self.refs[block] -= 1
            if self.refs[block] == 0:
""",
                """            self.refs[block] -= 1
        for block in blocks:
            if block != NULL_BLOCK and self.refs[block] == 0:
""",
            ),
            Edit(
                "pool",
                "        for block in blocks:\n            if block == NULL_BLOCK:",
                "        blocks = list(blocks)\n        for block in blocks:\n"
                "            if block == NULL_BLOCK:",
            ),
        ),
        ("A1", "A5"),
        package=REFERENCE,
    ),
    Mutant(
        "free-shown-twice",
        "FREE.ONCE",
        "the free list shows its first block once more at its end",
        (
            Edit(
                M,
                SHOWN_FREE,
                "free_list=cast(Table, tuple([*self.pool.free, *list(self.pool.free)[:1]])),",
            ),
        ),
        ("A5",),
    ),
    Mutant(
        "free-ghost",
        "FREE.EXACT",
        "a free block that is hit stays in the free list",
        (
            Edit(
                "pool",
                "        if self.refs[block] == 0:\n            self.free_list.remove(block)\n",
                "",
            ),
        ),
        ("A4",),
        package=REFERENCE,
    ),
    Mutant(
        "free-lost",
        "FREE.EXACT",
        "a keyed block that is freed never comes back to the free list",
        (
            Edit(
                P,
                "        if keyed:\n            self.free.push_back_many(keyed)",
                "        if keyed:\n            self.free.push_back_many(keyed[1:])",
            ),
        ),
        ("A4",),
    ),
    Mutant(
        "free-head-first",
        "FREE.TAIL",
        "a table is freed from its head",
        (Edit("requests", TAILS, "[block for table in self.tables for block in table if block]"),),
    ),
    Mutant(
        "free-detached-head-first",
        "FREE.TAIL",
        "detached blocks are freed from their head",
        (Edit(M, "held.blocks[::-1]", "held.blocks"),),
    ),
    # --- hits held first --------------------------------------------------------------------------
    Mutant(
        "alloc-hits-by-group",
        "ALLOC.HITS",
        "a group's hits are held just before its blocks are taken, after those of other groups",
        (
            Edit(G, HELD_FIRST, ""),
            Edit(
                G,
                FILLED,
                f"{FILLED}        self.pool.hold_many(table)\n"
                "        self.pool.hold_many([source])\n",
            ),
        ),
        ("A2",),
    ),
    Mutant(
        "alloc-hits-late",
        "ALLOC.HITS",
        "a group's hits are held when its blocks have been taken",
        (
            Edit(G, HELD_FIRST, "        self.pool.hold_many(plan.sources)\n"),
            Edit(
                G,
                FILLED,
                f"{FILLED}        hits = list(table)\n",
            ),
            Edit(
                G,
                "        known = len(plan.hit.blocks[g])\n        return",
                "        self.pool.hold_many(hits)\n"
                "        known = len(plan.hit.blocks[g])\n        return",
            ),
        ),
        ("A3",),
    ),
    Mutant(
        "alloc-source-late",
        "ALLOC.HITS",
        "the shared block that is copied from is not held while the copy waits",
        (Edit(G, "        self.pool.hold_many(plan.sources)\n", ""),),
        ("A2", "B5"),
    ),
    # --- capacity ---------------------------------------------------------------------------------
    Mutant(
        "alloc-free-hits",
        "ALLOC.CAPACITY",
        "hits that nobody holds are not counted against the free blocks",
        (Edit(G, NEED, "need += len(fresh)"),),
        ("A3",),
    ),
    Mutant(
        "alloc-dear-hits",
        "ALLOC.CAPACITY",
        "hits that somebody holds are counted against the free blocks",
        (Edit(G, NEED, "need += len(fresh) + len([b for b in table if b])"),),
        ("A3", "C9"),
    ),
    Mutant(
        "alloc-source-uncounted",
        "ALLOC.CAPACITY",
        "the shared block of a partial hit is not counted against the free blocks",
        (Edit(G, "need = len(self.pool.unheld(plan.sources))", "need = 0"),),
        ("C9",),
    ),
    Mutant(
        "alloc-move-uncounted",
        "ALLOC.CAPACITY",
        "the block that an owner's entry moves to is not counted",
        (
            Edit(
                G,
                "if last >= len(table) or length_of[table[last]]:",
                "if last >= len(table):",
            ),
            Edit(G, "        if not need:\n", "        if not need and not self._keyed(r, end):\n"),
            Edit(
                G,
                "    def _count_states(",
                "    def _keyed(self, r: Request, end: int) -> bool:\n"
                "        sizes, length_of = self.layout.sizes, self.pool.index.length_of\n"
                "        return any([length_of[r.tables[g][(end - 1) // sizes[g]]]\n"
                "            for g in self.layout.recurrent_ids])\n\n    def _count_states(",
            ),
        ),
        ("C9",),
    ),
    Mutant(
        "alloc-one-spare",
        "ALLOC.CAPACITY",
        "one block is always kept in reserve",
        (Edit(G, ROOM, "return need < self.pool.free.count"),),
        ("G1",),
    ),
    Mutant(
        "alloc-one-spare-later",
        "ALLOC.CAPACITY",
        "a running request may not take the last block",
        (Edit(G, "if need > self.pool.free.count:", "if need and need >= self.pool.free.count:"),),
    ),
    Mutant(
        "alloc-whole-length",
        "LIVE.ALONE",
        "a request is refused for ever unless the longest one would fit",
        (
            Edit(
                G,
                ROOM,
                "most = sum([-(-self.layout.max_model_len // s) for s in self.layout.sizes])\n"
                "        return need <= self.pool.free.count and most < len(self.pool.refs)",
            ),
        ),
        ("G1",),
        hidden=True,
    ),
    Mutant(
        "alloc-parked",
        "ALLOC.CAPACITY",
        "nobody is admitted while another request's external tokens are on their way",
        (
            Edit(
                M,
                "            grant = self.granter.first(r, hit, *tokens)\n",
                "            if any(other.loading for other in self.requests.values()):\n"
                "                return ev.Grant(False, self.layout.nothing, self.layout.nothing)\n"
                "            grant = self.granter.first(r, hit, *tokens)\n",
            ),
        ),
        ("G2",),
    ),
    Mutant(
        "alloc-never-again",
        "LIVE.ALONE",
        "a request that was preempted is never granted again",
        (
            Edit(
                M,
                "            grant = self.granter.first(r, hit, *tokens)\n",
                "            if r.last_step:\n"
                "                return ev.Grant(False, self.layout.nothing, self.layout.nothing)\n"
                "            grant = self.granter.first(r, hit, *tokens)\n",
            ),
        ),
        ("G2",),
        hidden=True,
    ),
    # --- refusals ---------------------------------------------------------------------------------
    Mutant(
        "alloc-refusal-holds",
        "REF.COUNT",
        "a refused request keeps its hits held",
        (
            Edit(
                G,
                "        if not self._room(plan) or self._must_wait(plan):\n",
                "        if not self._room(plan) or self._must_wait(plan):\n"
                "            for table in plan.tables:\n"
                "                self.pool.hold_many(table)\n",
            ),
        ),
        ("A9",),
    ),
    Mutant(
        "alloc-refusal-takes",
        "ALLOC.REFUSAL",
        "a running request that is refused loses its last block of attention",
        (
            Edit(
                G,
                "        if need > self.pool.free.count:\n",
                "        if need > self.pool.free.count:\n"
                "            if len(r.tables[layout.full_ids[0]]) > 1:\n"
                "                g = layout.full_ids[0]\n"
                "                gone = r.cut(g, len(r.tables[g]) - 1)\n"
                "                self.fences.release(gone, r.last_step)\n",
            ),
        ),
        ("A9",),
    ),
    Mutant(
        "alloc-refusal-promises",
        "ALLOC.REFUSAL",
        "a refusal names blocks all the same",
        (
            Edit(
                G,
                "return Grant(False, nothing, r.table() if r.tables else nothing)",
                "return Grant(False, r.table() if r.tables else nothing, "
                "r.table() if r.tables else nothing)",
            ),
        ),
    ),
    Mutant(
        "alloc-nothing",
        "ALLOC.NOTHING",
        "a grant of nothing is granted",
        (
            Edit(
                M,
                'raise ev.Rejected("a grant of no new and no external tokens")',
                "r, nothing = self.requests[request], self.layout.nothing\n"
                "            return ev.Grant(True, nothing, r.table() if r.tables else nothing)",
            ),
        ),
        ("G4",),
    ),
    # --- zeroing ----------------------------------------------------------------------------------
    Mutant(
        "zero-never",
        "ALLOC.ZEROED",
        "no block is ever zeroed",
        (Edit(G, "        if self.layout.zeroed[g]:\n", "        if False:\n"),),
        ("H1",),
    ),
    Mutant(
        "zero-first-only",
        "ALLOC.ZEROED",
        "of the blocks taken together only the first is zeroed",
        (Edit(G, "blocks[unzeroed:]:", "blocks[unzeroed : unzeroed + 1]:"),),
        ("H1",),
    ),
    Mutant(
        "zero-attention-only",
        "ALLOC.ZEROED",
        "blocks of recurrent groups are not zeroed",
        (
            Edit(
                G,
                "        if self.layout.zeroed[g]:\n",
                "        if self.layout.zeroed[g] and not self.layout.recurrent[g]:\n",
            ),
        ),
        ("H1",),
    ),
    Mutant(
        "zero-not-after-loss",
        "ALLOC.ZEROED",
        "blocks whose external tokens never came are not zeroed",
        (
            Edit(
                M,
                "                for block in r.tables[g][kept : -(-r.computed // size)]:\n"
                "                    self.lists.zero(block)\n",
                "                pass\n",
            ),
        ),
        ("H1",),
    ),
    Mutant(
        "zero-external",
        "ALLOC.ZEROED_ONLY",
        "blocks that a connector writes are zeroed too",
        (Edit(G, "blocks[unzeroed:]:", "blocks:"),),
        ("H2",),
    ),
    Mutant(
        "zero-again",
        "ALLOC.ZEROED_ONLY",
        "what was zeroed in the last step is zeroed again in the next",
        (Edit(S, "        self.to_zero.clear()\n        return blocks", "        return blocks"),),
        ("H2",),
    ),
    Mutant(
        "zero-free-block",
        "ALLOC.ZEROED_ONLY",
        "a block that nobody holds, and that has no key, is zeroed as well",
        (
            Edit(
                M,
                "self.lists.drain_zeroing()",
                "self.lists.drain_zeroing() + tuple(\n"
                "            [b for b in self.pool.free if not self.pool.index.length_of[b]]"
                "[: not self.layout.connected])",
            ),
        ),
        ("H2",),
    ),
    Mutant(
        "zero-next-block",
        "ALLOC.ZEROED_ONLY",
        "the block behind the last one to zero is zeroed as well",
        (
            Edit(
                S,
                "        self.to_zero.clear()\n        return blocks",
                "        self.to_zero.clear()\n"
                "        beyond = blocks[-1] + 1 if blocks else 0\n"
                "        return blocks + ((beyond,) if 0 < beyond < len(refs) else ())",
            ),
        ),
        ("H2",),
    ),
    Mutant(
        "zero-former-owner",
        "ALLOC.ZEROED_ONLY",
        "a block that left its owner and is loaded into is zeroed for the former owner",
        (
            Edit(
                S,
                "        if self.to_zero:\n            for block in blocks:\n"
                "                if refs[block] == 1:\n"
                "                    self.to_zero.pop(block, None)\n",
                "        pass\n",
            ),
        ),
        ("H2",),
    ),
    # --- counts -----------------------------------------------------------------------------------
    Mutant(
        "ref-null",
        "REF.COUNT",
        "the null block is counted",
        (
            Edit(
                M,
                SHOWN_COUNTS,
                "refcounts={BlockId(b): n or 1 for b, n in enumerate(self.pool.refs) "
                "if n or not b},",
            ),
        ),
        ("F5",),
    ),
    Mutant(
        "ref-capped",
        "REF.COUNT",
        "the books count no more than two holders",
        (
            Edit(
                M,
                SHOWN_COUNTS,
                "refcounts={BlockId(b): min(n, 2) for b, n in enumerate(self.pool.refs) if n},",
            ),
        ),
        ("A4",),
    ),
    Mutant(
        "ref-one-more-at-first",
        "REF.COUNT",
        "when a pass has just begun the books count one holder too many",
        (
            Edit(
                M,
                "        self.lists.begin()\n        return ev.Done()",
                "        self.lists.begin()\n        self.begun = True\n        return ev.Done()",
            ),
            Edit(
                M,
                "        self.asked = self.found",
                "        self.begun = False\n        self.asked = self.found",
            ),
            Edit(
                M,
                "        index, requests, detached = self.pool.index",
                "        begun, self.begun = self.begun, False\n"
                "        index, requests, detached = self.pool.index",
            ),
            Edit(
                M,
                SHOWN_COUNTS,
                "refcounts={BlockId(b): n + begun for b, n in enumerate(self.pool.refs) if n},",
            ),
        ),
        ("A4",),
    ),
    Mutant(
        "ref-detached-lost",
        "REF.DETACHED",
        "a detached list leaves out the last block",
        (
            Edit(
                M,
                "return ev.Detached(cast(Table, tuple(pins + blocks)))",
                "return ev.Detached(cast(Table, tuple((pins + blocks)[:-1])))",
            ),
        ),
        ("A1",),
    ),
    Mutant(
        "ref-detached-pins",
        "REF.DETACHED",
        "detaching does not tell of pins",
        (
            Edit(
                M,
                "return ev.Detached(cast(Table, tuple(pins + blocks)))",
                "return ev.Detached(cast(Table, tuple(blocks)))",
            ),
        ),
        ("A1", "A11"),
    ),
    Mutant(
        "ref-detach-frees",
        "REF.DETACHED",
        "detaching frees the blocks that it lists",
        (
            Edit(
                M,
                "        held.blocks += blocks\n",
                "        self.fences.release(blocks[::-1], r.last_step)\n",
            ),
        ),
        ("B5",),
    ),
    Mutant(
        "ref-detached-unshown-pins",
        "REF.PINS",
        "the books do not show pins of detached lists",
        (
            Edit(
                M,
                "        pins += [block for held in detached.values() for block in held.pins]\n",
                "",
            ),
        ),
        ("A11",),
    ),
    # --- eviction ---------------------------------------------------------------------------------
    Mutant(
        "evict-stale-key",
        "EVICT.TAKEN",
        "a stale key is never dropped: a block that is taken keeps its own",
        (
            Edit(
                P,
                "        if keyed:\n            self.index.unpublish_many(keyed)\n        return",
                "        return",
            ),
        ),
        ("A8",),
    ),
    Mutant(
        "evict-first-only",
        "EVICT.TAKEN",
        "of the keyed blocks taken together only the first loses its key",
        (Edit(P, "self.index.unpublish_many(keyed)", "self.index.unpublish_many(keyed[:1])"),),
        ("A8",),
    ),
    Mutant(
        "evict-one-index",
        "EVICT.TAKEN",
        "a block that is taken has no key in the books, but is still found",
        (
            Edit(
                P,
                "            self.index.unpublish_many(keyed)",
                "            for block in keyed:\n                length_of[block] = 0",
            ),
        ),
        ("A8",),
        hidden=True,
    ),
    Mutant(
        "evict-first-asked",
        "EVICT.ASKED",
        "of the blocks that are to be evicted only the first is",
        (
            Edit(
                M,
                "unpublish_many(list[int](blocks))",
                "unpublish_many(list[int](blocks)[:1])",
            ),
        ),
        ("F2",),
    ),
    Mutant(
        "evict-held-kept",
        "EVICT.ASKED",
        "evicting a block that somebody holds does nothing",
        (
            Edit(
                M,
                "unpublish_many(list[int](blocks))",
                "unpublish_many([b for b in blocks if not self.pool.refs[b]])",
            ),
        ),
        ("F2",),
    ),
    Mutant(
        "evict-frees",
        "EVICT.ASKED",
        "evicting a block takes it from its holder",
        (
            Edit(
                M,
                "        self.pool.index.unpublish_many(list[int](blocks))\n",
                "        self.pool.index.unpublish_many(list[int](blocks))\n"
                "        self.pool.drop_many([b for b in blocks if self.pool.refs[b] == 1])\n",
            ),
        ),
        ("F2",),
    ),
    Mutant(
        "evict-twins",
        "EVICT.ASKED",
        "evicting one of several copies of a key evicts them all",
        (
            Edit(
                M,
                "        self.pool.index.unpublish_many(list[int](blocks))\n",
                "        index = self.pool.index\n"
                "        for block in list[int](blocks):\n"
                "            if index.length_of[block]:\n"
                "                key = index.group_of[block], index.digest_of[block]\n"
                "                index.unpublish_many(index.copies(*key))\n",
            ),
        ),
        ("E1",),
    ),
    Mutant(
        "evict-hides-twin",
        "HIT.LENGTH",
        "when the oldest of several copies of a key goes, the others are not found any more",
        (
            Edit(
                "index",
                "            found[digest] = following",
                "            del found[digest]",
            ),
        ),
        ("E1",),
    ),
    Mutant(
        "reset-under-holders",
        "EVICT.RESET",
        "a reset succeeds while blocks are held",
        (Edit(M, "        if not self.pool.idle:\n", "        if False:\n"),),
        ("F2",),
    ),
    Mutant(
        "reset-never",
        "EVICT.RESET",
        "a reset never succeeds once a block was keyed",
        (
            Edit(
                M,
                "        if not self.pool.idle:\n",
                "        if not self.pool.idle or any(self.pool.index.oldest):\n",
            ),
        ),
        ("F2",),
    ),
    Mutant(
        "reset-keeps",
        "EVICT.CLEARED",
        "a reset says that it is done and keeps the keys",
        (Edit(M, "        self.pool.index.clear()\n", ""),),
        ("F2", "D5"),
    ),
    Mutant(
        "reset-half",
        "EVICT.CLEARED",
        "a reset that does not succeed drops the keys of free blocks",
        (
            Edit(
                M,
                "        if not self.pool.idle:\n",
                "        if not self.pool.idle:\n"
                "            self.pool.index.unpublish_many(list(self.pool.free))\n",
            ),
        ),
        ("F2",),
    ),
    Mutant(
        "reset-hidden",
        "DATA.READ",
        "a target that shows no books keeps its keys over a reset",
        (Edit(M, "        self.pool.index.clear()\n", ""),),
        ("F2", "D5"),
        hidden=True,
    ),
]
