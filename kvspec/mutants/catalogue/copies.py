"""Faults of COW, COPY and STEP: copies, and the order inside a step (design 4.4, 4.5)."""

from __future__ import annotations

from kvspec.mutants.load import Edit
from kvspec.mutants.model import Mutant

G, M, S = "grants", "manager", "step_lists"
FULL_SOURCE = "if self.hit.num_tokens % size:"
STATE_SOURCE = "elif local % size:"
STATE_TAKEN = "if last not in fresh:"
MOVES = "        if self.pool.index.length_of[table[slot]]:\n            moves.append(g)\n"
UNPUBLISHED = "        index.unpublish_many([own])\n"
PUBLISHED = "        index.publish(moved, g, digest, length)\n"
QUEUED = "            self._queue(copies, source, blocks[0])\n"
DRAINED = "        copies = self.lists.drain_copies()\n"
ENDS = "ends = [end for pair in copies for end in pair]"
MUST_WAIT = "if not self._room(plan) or self._must_wait(plan):"
SOURCE_WAITS = "if source and lists.lowest_write(source, local) < local:"

MUTANTS = [
    # --- copy-on-write by the hitter --------------------------------------------------------------
    Mutant(
        "cow-attention-shared",
        "COW.HITTER",
        "a partial hit of attention is written in place",
        (Edit(G, FULL_SOURCE, "if False:"),),
        ("C8", "C9"),
    ),
    Mutant(
        "cow-state-shared",
        "COW.HITTER",
        "a partial hit of a state is written in place",
        (
            Edit(G, STATE_SOURCE, "elif False:"),
            Edit(G, STATE_TAKEN, "if last not in fresh and not table[last]:"),
        ),
        ("C8",),
    ),
    Mutant(
        "cow-not-copied",
        "COW.HITTER",
        "a hitter gets its own block and no copy",
        (Edit(G, QUEUED, ""),),
        ("C9",),
    ),
    Mutant(
        "cow-backwards",
        "COW.HITTER",
        "the copy of a partial hit goes from the private block to the shared one",
        (Edit(G, QUEUED, "            self._queue(copies, blocks[0], source)\n"),),
        ("C9",),
    ),
    Mutant(
        "cow-first-group",
        "COW.HITTER",
        "where several groups copy, only the first is copied",
        (Edit(G, QUEUED, "            if not copies:\n    " + QUEUED),),
        ("C9",),
    ),
    Mutant(
        "cow-untold",
        "COW.HITTER",
        "the grant on a partial hit does not tell of the copy that it queues",
        (
            Edit(
                G,
                "return Grant(True, cast(Tables, tuple(new_blocks)), r.table(), tuple(copies))\n\n"
                "    def _plan",
                "return Grant(True, cast(Tables, tuple(new_blocks)), r.table())\n\n    def _plan",
            ),
        ),
    ),
    Mutant(
        "cow-source-unkeyed",
        "COW.KEPT",
        "the shared block of a partial hit loses its key to the copy",
        (Edit(G, QUEUED, f"{QUEUED}            self.pool.index.unpublish_many([source])\n"),),
        ("C8",),
    ),
    Mutant(
        "cow-source-withdrawn",
        "REG.ONLY",
        "when a hitter is withdrawn the block that it hit loses its key",
        (
            Edit(
                M,
                "        self.lists.cancel(r)\n        retract",
                "        own = set(r.blocks())\n"
                "        self.pool.index.unpublish_many(\n"
                "            [s for s, d in self.lists.copies if d in own])\n"
                "        self.lists.cancel(r)\n        retract",
            ),
        ),
        ("F2",),
    ),
    Mutant(
        "cow-private-keyed",
        "COW.UNKEYED",
        "the private block of a hitter is keyed for the hit",
        (
            Edit(
                G,
                QUEUED,
                f"{QUEUED}            index = self.pool.index\n"
                "            if index.length_of[source]:\n"
                "                index.publish(blocks[0], g, index.digest_of[source],\n"
                "                              index.length_of[source])\n",
            ),
        ),
        ("C8",),
    ),
    # --- copy-on-write by the owner ---------------------------------------------------------------
    Mutant(
        "cow-owner-overwrites",
        "COW.OWNER",
        "the owner of a keyed tail goes on in it and queues no copy",
        (Edit(G, MOVES, ""),),
        ("C8",),
    ),
    Mutant(
        "cow-owner-overwrites-unseen",
        "DATA.STATE",
        "the owner of a keyed tail goes on in it, and its books are not shown",
        (Edit(G, MOVES, ""),),
        ("C8",),
        hidden=True,
    ),
    Mutant(
        "cow-owner-always",
        "COW.OWNER",
        "an owner that goes on in an unkeyed block copies it too",
        (
            Edit(
                G,
                "if last >= len(table) or length_of[table[last]]:",
                "if last >= len(table) or table[last]:",
            ),
            Edit(G, MOVES, "        moves.append(g)\n"),
            Edit(
                G,
                UNPUBLISHED + PUBLISHED,
                "        if not length:\n            self._queue(copies, own, moved)\n"
                "            return\n" + UNPUBLISHED + PUBLISHED,
            ),
        ),
        ("C7",),
    ),
    Mutant(
        "cow-key-stays",
        "COW.MOVED",
        "the owner's own block keeps the key",
        (
            Edit(G, UNPUBLISHED, ""),
            Edit(G, PUBLISHED, ""),
        ),
        ("C8",),
    ),
    Mutant(
        "cow-key-lost",
        "COW.MOVED",
        "an owner that goes on loses its key, the copy gets none",
        (Edit(G, PUBLISHED, ""),),
        ("C7",),
    ),
    Mutant(
        "cow-key-doubled",
        "COW.MOVED",
        "both the copy and the owner's block have the key",
        (Edit(G, UNPUBLISHED, ""),),
        ("C8",),
    ),
    Mutant(
        "cow-owner-replaced",
        "TABLE.SHAPE",
        "the owner goes on in the copy, and the worker hears nothing of it",
        (
            Edit(
                G,
                "        self._queue(copies, own, moved)\n",
                "        self._queue(copies, own, moved)\n"
                "        r.tables[g][r.tables[g].index(own)] = moved\n"
                "        r.extend(g, [])\n",
            ),
        ),
        ("C7",),
    ),
    Mutant(
        "cow-owner-announced",
        "TABLE.NEW",
        "the copy of an owner's tail is announced as a new block",
        (
            Edit(
                G,
                "        for g in moves:\n",
                "        for g in moves:\n            new_blocks[g] = (list(self.pool.free)[0],)\n",
            ),
        ),
        ("C7",),
    ),
    # --- the queue --------------------------------------------------------------------------------
    Mutant(
        "copy-lost",
        "COPY.QUEUED",
        "the last of several copies is not drained",
        (
            Edit(
                S,
                "        copies = tuple(self.copies)\n",
                "        copies = tuple(self.copies[:1])\n",
            ),
        ),
        ("C7",),
    ),
    Mutant(
        "copy-repeated",
        "COPY.QUEUED",
        "the first copy is drained twice",
        (
            Edit(M, DRAINED, f"{DRAINED}        told = copies + copies[:1]\n"),
            Edit(M, "return ev.Copies(copies, tuple(ends))", "return ev.Copies(told, tuple(ends))"),
        ),
    ),
    Mutant(
        "copy-told-backwards",
        "COPY.QUEUED",
        "the drained copies name destination and source the wrong way round",
        (
            Edit(
                M,
                "return ev.Copies(copies, tuple(ends))",
                "return ev.Copies(tuple([(d, s) for s, d in copies]), tuple(ends))",
            ),
        ),
    ),
    Mutant(
        "copy-foreign-source",
        "COPY.SOURCE",
        "an owner's copy is taken from a block of another group, by a target without books",
        (
            Edit(
                G,
                "        self._queue(copies, own, moved)\n",
                "        ours = {own, moved, *r.blocks()}\n"
                "        held = [b for b, n in enumerate(self.pool.refs) if n and b not in ours]\n"
                "        other = [*held, own][0]\n"
                "        self.pool.hold_many([other])\n"
                "        self.pool.drop_many([own])\n"
                "        self._queue(copies, other, moved)\n",
            ),
        ),
        ("B5",),
        hidden=True,
    ),
    Mutant(
        "cow-spare-copy",
        "COW.OWNER",
        "an owner whose state has no key copies it into a spare block, though it stays where it is",
        (
            Edit(
                G,
                MOVES,
                MOVES + "        elif self.pool.free.count > 8:\n"
                "            spare = self._take(g, 1, 1)[0]\n"
                "            self.pool.hold_many([table[slot]])\n"
                "            self._queue(self.spare, table[slot], spare)\n",
            ),
            Edit(
                G,
                "        moves: list[int] = []\n",
                "        moves: list[int] = []\n        self.spare = copies\n",
            ),
            Edit(G, '__slots__ = ("fences", ', '__slots__ = ("spare", "fences", '),
            Edit(
                G,
                "        if not need:\n            return",
                "        if not need and False:\n            return",
            ),
        ),
    ),
    Mutant(
        "copy-foreign-too",
        "COPY.SOURCE",
        "where a tail moves, a foreign block is copied into a spare one too, by a target without "
        "books",
        (
            Edit(
                G,
                "        self._queue(copies, own, moved)\n",
                "        self._queue(copies, own, moved)\n"
                "        ours = {own, moved, *r.blocks()}\n"
                "        held = [b for b, n in enumerate(self.pool.refs) if n and b not in ours]\n"
                "        if held and self.pool.free.count:\n"
                "            spare = self._take(g, 1, 1)\n"
                "            self.pool.hold_many(held[:1])\n"
                "            self._queue(copies, held[0], spare[0])\n",
            ),
        ),
        ("B5",),
        hidden=True,
    ),
    Mutant(
        "copy-conflict",
        "COPY.CONFLICT",
        "two requests that hit the same tail in one step copy into the same block",
        (
            Edit(
                G,
                "        pair = BlockId(source), BlockId(destination)\n",
                "        before = [d for s, d in self.lists.copies if s == source]\n"
                "        pair = BlockId(source), BlockId((before or [destination])[-1])\n",
            ),
        ),
        ("H5",),
    ),
    Mutant(
        "copy-chained",
        "COPY.CONFLICT",
        "a hit on a tail that moves in this step is granted, and copied from what a copy writes",
        (Edit(S, "return 0 if block in self.copied_into else", "return"),),
        ("H5", "B3"),
        hidden=True,
    ),
    Mutant(
        "copy-one-retained",
        "COPY.RETAINED",
        "only the destinations of copies are retained",
        (
            Edit(
                M,
                ENDS,
                "ends = [pair[1] for pair in copies]\n"
                "        self.pool.drop_many([pair[0] for pair in copies])",
            ),
        ),
        ("B5",),
    ),
    Mutant(
        "copy-retained-untold",
        "COPY.RETAINED",
        "the sources are retained, and not named among the endpoints",
        (
            Edit(
                M,
                "return ev.Copies(copies, tuple(ends))",
                "return ev.Copies(copies, tuple(ends[1::2]))",
            ),
        ),
        ("B5",),
    ),
    Mutant(
        "copy-not-retained",
        "COPY.RETAINED",
        "the endpoints are freed when the copies are drained",
        (
            Edit(
                M,
                "            self.fences.retain(list[int](ends))\n",
                "            self.pool.drop_many(list[int](ends))\n",
            ),
        ),
        ("B5",),
    ),
    # --- deferral ---------------------------------------------------------------------------------
    Mutant(
        "step-no-deferral",
        "STEP.DEFER",
        "a hit on a state that this step writes is granted at once",
        (Edit(G, MUST_WAIT, "if not self._room(plan):"),),
        ("B3",),
    ),
    Mutant(
        "step-no-state-deferral",
        "STEP.DEFER",
        "a whole state that this step writes is started from at once",
        (Edit(G, "if state and lists.lowest_write(state, local) < local:", "if False:"),),
        ("B3", "B4"),
    ),
    Mutant(
        "step-no-copy-deferral",
        "STEP.DEFER",
        "a partial hit on what this step writes is copied at once",
        (Edit(G, SOURCE_WAITS, "if False:"),),
        ("B3",),
    ),
    Mutant(
        "step-copy-not-awaited",
        "STEP.DEFER",
        "a tail that is copied in this step is started from at once",
        (Edit(S, "return 0 if block in self.copied_into else", "return"),),
        ("B3", "H5"),
    ),
    Mutant(
        "step-attention-deferred",
        "ALLOC.CAPACITY",
        "a hit of whole attention blocks that this step writes is deferred too",
        (
            Edit(
                G,
                "            if self.layout.recurrent[g] and kept:\n",
                "            if not self.layout.recurrent[g] and kept:\n"
                "                full = plan.tables[g][0]\n"
                "                if full and lists.lowest_write(full, local) < local:\n"
                "                    return True\n"
                "            if self.layout.recurrent[g] and kept:\n",
            ),
        ),
    ),
    Mutant(
        "step-deferred-too-long",
        "ALLOC.CAPACITY",
        "what a step wrote is deferred until a later step ends",
        (
            Edit(
                S,
                "        self.granted.clear()\n        self.writes.clear()\n",
                "        self.granted.clear()\n"
                "        self.writes = dict(list(self.writes.items())[-1:])\n",
            ),
        ),
        ("B3",),
    ),
    Mutant(
        "step-number",
        "STEP.NUMBER",
        "the first step is called 0",
        (Edit(M, "return ev.Dispatched(Step(step))", "return ev.Dispatched(Step(step - 1))"),),
    ),
    Mutant(
        "step-number-stands",
        "STEP.NUMBER",
        "a step that granted nothing gets no number of its own",
        (
            Edit(
                M,
                "return ev.Dispatched(Step(step))",
                "return ev.Dispatched(Step(step if told else max(step - 1, 0)))",
            ),
            Edit(
                M,
                "        step = self.fences.dispatch()\n",
                "        step, told = self.fences.dispatch(), bool(self.lists.granted)\n",
            ),
        ),
    ),
]
