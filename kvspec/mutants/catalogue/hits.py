"""Faults of HIT and TRUNC: lookups and their truncation (design 4.2, 4.9)."""

from __future__ import annotations

from kvspec.mutants.load import Edit
from kvspec.mutants.model import Mutant

L, M = "lookup", "manager"
LOOKED_UP = "found = self._search(request).joint()\n        self.asked, self.found = request, found"
ANSWERED = "return ev.Hit(cast(Tables, tuple(found.blocks)), found.num_tokens, found.boundary)"
STATE_SLOTS = "(0,) * (-(-self.lengths[g] // size) - 1) + (run[0],)"
DROP = "length -= layout.eagle_drop[g]"
AGREED = "        assert all(self.lengths[g] == length for g in recurrent_ids)\n"

MUTANTS = [
    # --- length -----------------------------------------------------------------------------------
    Mutant(
        "hit-whole-prompt",
        "HIT.LIMIT",
        "a prompt that is cached whole leaves nothing to compute",
        (Edit(L, "self.limit: int = num_tokens - 1", "self.limit: int = num_tokens"),),
        ("F7", "C12"),
    ),
    Mutant(
        "hit-off-grid",
        "HIT.ALIGNED",
        "full groups of different block sizes hit off the common grid",
        (Edit(L, "length - length % layout.alignment", "length"),),
    ),
    Mutant(
        "hit-said-off-grid",
        "HIT.ALIGNED",
        "a lookup on behalf of a connector that hits nothing says one token",
        (
            Edit(
                M,
                "return ev.ConnectorHit(blocks, found.num_tokens, found.boundary, found.diverged)",
                "num = found.num_tokens or self.layout.alignment // 2\n"
                "        return ev.ConnectorHit(blocks, num, found.boundary, found.diverged)",
            ),
        ),
    ),
    Mutant(
        "hit-state-no-veto",
        "HIT.LENGTH",
        "a recurrent group that has no state at all does not shorten the hit",
        (
            Edit(L, "if self.lengths[g] < length:", "if 0 < self.lengths[g] < length:"),
            Edit(L, AGREED, ""),
        ),
        ("C1", "C4"),
    ),
    Mutant(
        "hit-state-further",
        "HIT.LENGTH",
        "where the state reaches further than attention, its length is the hit",
        (
            Edit(
                L,
                "        length = self._attention()\n",
                "        length = max([self._attention(), *[self.lengths[g] for g in "
                "self.layout.recurrent_ids]])\n",
            ),
        ),
        ("C4", "C11"),
    ),
    Mutant(
        "hit-one-round",
        "HIT.LENGTH",
        "recurrent groups are asked once each, and need not agree in the end",
        (
            Edit(
                L,
                "                    length = self.lengths[g]\n                    agreed = False",
                "                    length = self.lengths[g]",
            ),
            Edit(L, AGREED, ""),
        ),
        ("C5", "C1"),
    ),
    Mutant(
        "hit-first-state-only",
        "HIT.LENGTH",
        "a state is looked for at the last boundary only",
        (Edit(L, "            at -= step", "            at = 0"),),
        ("C1",),
    ),
    Mutant(
        "hit-states-on-blocks",
        "HIT.LENGTH",
        "states inside a block are not found",
        (
            Edit(
                L,
                "            if block:\n                self.runs[g] = [block]",
                "            if block and at * unit % layout.sizes[g] == 0:\n"
                "                self.runs[g] = [block]",
            ),
        ),
    ),
    Mutant(
        "hit-no-tail",
        "HIT.LENGTH",
        "a partial tail is never found in attention",
        (Edit(L, "        if layout.fine:", "        if False:"),),
    ),
    Mutant(
        "hit-short-tail",
        "HIT.LENGTH",
        "of several partial tails the shortest is taken",
        (
            Edit(
                L,
                "range(min(complete + units - 1, last), complete, -1)",
                "range(complete + 1, min(complete + units - 1, last) + 1)",
            ),
        ),
    ),
    Mutant(
        "hit-one-block-less",
        "HIT.LENGTH",
        "the last whole block of a prompt is never hit",
        (Edit(L, "self.digests[units : last + 1 : units]", "self.digests[units:last:units]"),),
        ("F7",),
    ),
    Mutant(
        "hit-shared-groups",
        "HIT.FOUND",
        "attention groups are all looked up among the first group's blocks",
        (
            Edit(
                L,
                "found, run = self.index.oldest[g], self.runs[g]",
                "found, run = self.index.oldest[0], self.runs[g]",
            ),
        ),
    ),
    Mutant(
        "hit-evicted-twin",
        "HIT.FOUND",
        "of two equal blocks the one that was evicted is hit",
        (
            Edit(
                L,
                "            run.append(block)\n        length = len(run) * size",
                "            twins = [\n"
                "                b for b, d in enumerate(self.index.digest_of)\n"
                "                if d == digest and self.index.group_of[b] == g\n"
                "                and not self.index.length_of[b]\n"
                "            ]\n"
                "            run.append([*twins, block][0])\n        length = len(run) * size",
            ),
            Edit(
                "index",
                "                    del found[self.digest_of[block]]\n",
                "                    del found[self.digest_of[block]]\n"
                "                self.digest_of[block] = NO_DIGEST\n",
            ),
            Edit(
                "pool",
                "                keyed.append(block)\n        if keyed:\n            self.index",
                "                keyed.append(block)\n"
                "            else:\n"
                '                self.index.digest_of[block] = b""\n'
                "        if keyed:\n            self.index",
            ),
            Edit(
                "manager",
                "        self.pool.index.unpublish_many(list[int](blocks))\n",
                "        index = self.pool.index\n"
                "        left = {b: index.digest_of[b] for b in blocks if index.length_of[b]}\n"
                "        index.unpublish_many(list[int](blocks))\n"
                "        for block, digest in left.items():\n"
                "            index.digest_of[block] = digest\n",
            ),
        ),
        ("A8",),
    ),
    Mutant(
        "hit-other-block",
        "HIT.FOUND",
        "a hit's last block of attention stands in all its slots",
        (
            Edit(
                L,
                "blocks.append(tuple(run[: -(-length // size)]))",
                "blocks.append(tuple(run[: -(-length // size)][-1:]) * -(-length // size))",
            ),
        ),
        ("A8",),
    ),
    # --- eagle ------------------------------------------------------------------------------------
    Mutant(
        "hit-no-drop",
        "HIT.LENGTH",
        "eagle's last unit is not given up",
        (Edit(L, DROP, "pass"),),
        ("C4",),
    ),
    Mutant(
        "hit-double-drop",
        "HIT.LENGTH",
        "eagle's last unit is given up twice",
        (Edit(L, DROP, "length = max(length - 2 * layout.eagle_drop[g], 0)"),),
        ("C5",),
    ),
    Mutant(
        "hit-drop-each-round",
        "HIT.LENGTH",
        "each round in which a state shortens the hit gives up one more unit",
        (
            Edit(
                L,
                "                    length = self.lengths[g]\n",
                "                    length = max(self.lengths[g] - max(self.layout.eagle_drop), 0)"
                "\n",
            ),
        ),
        ("C5",),
    ),
    Mutant(
        "hit-drop-a-block",
        "HIT.LENGTH",
        "in fine mode eagle gives up a whole block",
        (Edit(L, DROP, "length = max(length - (layout.eagle_drop[g] and size), 0)"),),
        ("C5",),
    ),
    # --- shape ------------------------------------------------------------------------------------
    Mutant(
        "hit-bare-state",
        "HIT.SHAPE",
        "a recurrent hit comes without the null slots before it",
        (Edit(L, STATE_SLOTS, "(run[0],)"),),
        ("C1",),
    ),
    Mutant(
        "hit-null-shown",
        "HIT.SHAPE",
        "the answer shows the state's block in the null slots before it too, books unseen",
        (
            Edit(L, STATE_SLOTS, "(run[0],) * -(-self.lengths[g] // size)"),
            Edit(
                "grants",
                "self.hit.num_tokens, list(hit), 0\n        fresh",
                "self.hit.num_tokens, [0] * (len(hit) - 1) + list(hit[-1:]), 0\n        fresh",
            ),
        ),
        hidden=True,
    ),
    Mutant(
        "hit-untrimmed",
        "HIT.SHAPE",
        "attention is not trimmed to the joint hit",
        (Edit(L, "tuple(run[: -(-length // size)])", "tuple(run)"),),
        ("C4",),
    ),
    Mutant(
        "hit-short-attention",
        "HIT.SHAPE",
        "attention brings a block less than its length needs, where it ends inside one",
        (Edit(L, "tuple(run[: -(-length // size)])", "tuple(run[: length // size])"),),
        ("C4", "C11"),
    ),
    # --- what else is told ------------------------------------------------------------------------
    Mutant(
        "hit-no-boundary",
        "HIT.BOUNDARY",
        "a shared prefix is never pointed out",
        (Edit(L, "self.longest if self.longest > length else 0", "0"),),
        ("C1",),
    ),
    Mutant(
        "hit-boundary-always",
        "HIT.BOUNDARY",
        "a shared-prefix boundary is told where the hit reaches it",
        (Edit(L, "self.longest if self.longest > length else 0", "self.longest"),),
    ),
    Mutant(
        "hit-boundary-of-attention",
        "HIT.BOUNDARY",
        "the shared-prefix boundary is attention's, not the longest of all groups",
        (Edit(L, "max(self.lengths)", "max([self.lengths[g] for g in layout.full_ids])"),),
        ("C1",),
    ),
    Mutant(
        "hit-uniform-diverges",
        "HIT.CONNECTOR",
        "a connector without support for divergence is told attention's own length",
        (Edit(L, "if not self.layout.diverging or max", "if max"),),
        ("C11",),
    ),
    Mutant(
        "hit-undiverged",
        "HIT.CONNECTOR",
        "that the state falls short is not told",
        (
            Edit(
                L,
                "self._result(local, self.lengths, min(states, default=local) < local)",
                "self._result(local, self.lengths, False)",
            ),
        ),
        ("C11",),
    ),
    Mutant(
        "hit-connector-larger",
        "HIT.CONNECTOR",
        "where a state reaches further, attention's length is told and not the joint hit",
        (Edit(L, " or max(states, default=0) > local:", ":"),),
        ("C11",),
    ),
    Mutant(
        "hit-connector-joint",
        "HIT.CONNECTOR",
        "every connector is told the joint hit",
        (Edit(L, "if not self.layout.diverging or max", "if True or max"),),
        ("C11",),
    ),
    # --- purity -----------------------------------------------------------------------------------
    Mutant(
        "hit-takes",
        "HIT.PURE",
        "a lookup holds what it finds",
        (
            Edit(
                M,
                LOOKED_UP,
                f"{LOOKED_UP}\n        for run in found.blocks:\n"
                "            self.pool.hold_many(list(run))",
            ),
        ),
        ("A9", "A11"),
    ),
    Mutant(
        "hit-drops-tail",
        "HIT.PURE",
        "a lookup that finds nothing drops the key of the block freed last",
        (
            Edit(
                M,
                LOOKED_UP,
                f"{LOOKED_UP}\n        if not found.num_tokens:\n"
                "            self.pool.index.unpublish_many(list(self.pool.free)[-1:])",
            ),
        ),
        ("A9",),
    ),
    Mutant(
        "hit-touches",
        "HIT.PURE",
        "a lookup moves what it finds to the back of the free list",
        (
            Edit(
                M,
                LOOKED_UP,
                f"{LOOKED_UP}\n        for run in found.blocks:\n"
                "            free = [b for b in run if b in self.pool.free]\n"
                "            self.pool.free.remove_many(free)\n"
                "            self.pool.free.push_back_many(free)",
            ),
        ),
        ("A9",),
    ),
    Mutant(
        "trunc-drops",
        "HIT.PURE",
        "what a truncation cuts off loses its keys",
        (
            Edit(
                M,
                "        self.found = cut\n",
                "        kept = {b for run in cut.blocks for b in run}\n"
                "        self.pool.index.unpublish_many(\n"
                "            [b for run in self.found.blocks for b in run if b not in kept])\n"
                "        self.found = cut\n",
            ),
        ),
        ("A9",),
    ),
    # --- truncation -------------------------------------------------------------------------------
    Mutant(
        "trunc-no-nulls",
        "TRUNC.VIEW",
        "a truncated recurrent list loses its nulls",
        (
            Edit(
                L,
                "blocks.append(found.blocks[g][:slots])",
                "blocks.append(tuple([b for b in found.blocks[g][:slots] if b]))",
            ),
        ),
        ("C11",),
    ),
    Mutant(
        "trunc-one-size",
        "TRUNC.VIEW",
        "every group is cut by the first group's block size",
        (Edit(L, "slots = num_tokens // size", "slots = num_tokens // layout.sizes[0]"),),
        ("C11",),
    ),
    Mutant(
        "trunc-inside",
        "TRUNC.ERROR",
        "a hit is cut inside a block",
        (Edit(L, "        if num_tokens % size:", "        if False:"),),
        ("C11",),
    ),
    Mutant(
        "trunc-beyond",
        "TRUNC.ERROR",
        "a hit is cut beyond its end",
        (Edit(L, "    if num_tokens > found.num_tokens:", "    if False:"),),
        ("C11",),
    ),
    Mutant(
        "trunc-strict",
        "LIVE.ANSWER",
        "a recurrent list that is shorter than the cut is taken for an error",
        (
            Edit(
                L,
                "        slots = num_tokens // size\n",
                "        slots = num_tokens // size\n        if len(found.blocks[g]) < slots:\n"
                '            return "too short"\n',
            ),
        ),
        ("C11",),
    ),
    Mutant(
        "trunc-full-hit-asserts",
        "LIVE.ANSWER",
        "a cut to nothing raises",
        (
            Edit(
                L,
                "    if num_tokens > found.num_tokens:",
                "    if not num_tokens:\n        raise ValueError(num_tokens)\n"
                "    if num_tokens > found.num_tokens:",
            ),
        ),
        ("F7", "C11"),
    ),
]
