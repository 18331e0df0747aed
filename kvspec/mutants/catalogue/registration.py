"""Faults of REG and TABLE: what a grant keys and what it announces (design 4.3)."""

from __future__ import annotations

from kvspec.mutants.load import Edit
from kvspec.mutants.model import Mutant

R, M, G, X = "registration", "manager", "grants", "index"
AT_END = "if end % size == 0 or end == r.tail:"
REGISTERED = "                register(self.layout, self.pool.index, r, start, end)\n"
LOST = "        r.computed = r.local\n"

MUTANTS = [
    # --- full blocks ------------------------------------------------------------------------------
    Mutant(
        "reg-last-block",
        "REG.COMPLETE",
        "a block that a chunk completes with its last token is not keyed",
        (
            Edit(
                R,
                "first, last = done // size, end // size",
                "first, last = done // size, max((end - 1) // size, done // size)",
            ),
        ),
    ),
    Mutant(
        "reg-first-of-run",
        "REG.COMPLETE",
        "of the blocks that a chunk completes only the first is keyed",
        (
            Edit(
                R,
                "    if last > first:\n",
                "    last = min(last, first + 1)\n    if last > first:\n",
            ),
        ),
    ),
    Mutant(
        "reg-wrong-end",
        "REG.COMPLETE",
        "a full block is keyed under the digest of its start",
        (
            Edit(
                R,
                "digests[(first + 1) * units : last * units + 1 : units]",
                "digests[first * units : (last - 1) * units + 1 : units]",
            ),
        ),
    ),
    Mutant(
        "reg-padding-counts",
        "REG.COMPLETE",
        "after a hit nothing more is keyed, as if the padding had been",
        (
            Edit(
                G,
                "r.computed, r.local, r.registered = plan.start, hit.num_tokens, hit.num_tokens",
                "r.computed, r.local, r.registered = plan.start, hit.num_tokens, "
                "hit.num_tokens and plan.end - 1",
            ),
        ),
        ("C11",),
    ),
    # --- states -----------------------------------------------------------------------------------
    Mutant(
        "reg-state-never",
        "REG.EXACT",
        "a state at a block's end is not keyed",
        (Edit(R, AT_END, "if end == r.tail:"),),
    ),
    Mutant(
        "reg-state-anywhere",
        "REG.EXACT",
        "the state at a chunk's end is keyed under the last boundary before it",
        (Edit(R, AT_END, "if end >= layout.hash_unit:"),),
        ("C2",),
    ),
    Mutant(
        "reg-state-hash-unit",
        "REG.EXACT",
        "a state is keyed at every hash boundary at which a chunk ends",
        (Edit(R, AT_END, "if end % layout.hash_unit == 0:"),),
        ("C2",),
    ),
    Mutant(
        "reg-state-passed",
        "REG.EXACT",
        "a state is keyed at a block's end that its chunk ran past",
        (
            Edit(
                R,
                f"    {AT_END}\n        _publish_state(layout, index, r, g, end)\n",
                f"    {AT_END}\n        _publish_state(layout, index, r, g, end)\n"
                "    elif end // size > start // size:\n"
                "        index.publish(r.tables[g][(end - 1) // size], g,\n"
                "                      r.chain.digests[end // size * layout.units[g]],\n"
                "                      end // size * size)\n",
            ),
        ),
        ("C2",),
    ),
    Mutant(
        "reg-state-at-start",
        "REG.EXACT",
        "a state that external tokens brought is not keyed",
        (Edit(R, "if done < start and start % size == 0:", "if False:"),),
        ("C11",),
    ),
    Mutant(
        "reg-state-off-grid",
        "REG.EXACT",
        "a state that external tokens brought is keyed inside a block too",
        (
            Edit(
                R,
                "if done < start and start % size == 0:",
                "if done < start and start % layout.hash_unit == 0:",
            ),
        ),
        ("C2", "C7"),
    ),
    Mutant(
        "reg-state-resumed",
        "REG.EXACT",
        "a resumed request keys the block that it starts from again, as its own end",
        (
            Edit(
                R,
                f"    {AT_END}\n        _publish_state(layout, index, r, g, end)\n",
                f"    {AT_END}\n        _publish_state(layout, index, r, g, end)\n"
                "    elif start // size == end // size and start % layout.hash_unit == 0:\n"
                "        if start:\n            _publish_state(layout, index, r, g, start)\n",
            ),
        ),
        ("C2",),
    ),
    # --- partial entries --------------------------------------------------------------------------
    Mutant(
        "reg-no-tail",
        "REG.PARTIAL",
        "attention's partial tail is not keyed",
        (
            Edit(
                R,
                "    if done < tail <= end and tail % size and tail // size == last:\n",
                "    if False:\n",
            ),
        ),
        ("C9",),
    ),
    Mutant(
        "reg-tail-at-end",
        "REG.PARTIAL",
        "attention's partial tail is keyed only by a chunk that ends there",
        (
            Edit(
                R,
                "if done < tail <= end and tail % size and tail // size == last:",
                "if done < tail == end and tail % size and tail // size == last:",
            ),
        ),
    ),
    Mutant(
        "reg-no-state-tail",
        "REG.PARTIAL",
        "a partial state is not keyed",
        (Edit(R, AT_END, "if end % size == 0:"),),
        ("C9",),
    ),
    Mutant(
        "reg-tail-sampled",
        "REG.ONLY",
        "the tail that may be keyed is that of all known tokens, not of the prompt",
        (
            Edit(
                R,
                "    tail = r.tail\n",
                "    tail = r.tail and end // layout.hash_unit * layout.hash_unit\n",
            ),
        ),
        ("F2",),
    ),
    # --- promotion --------------------------------------------------------------------------------
    Mutant(
        "reg-not-promoted",
        "REG.PROMOTED",
        "a block that is completed keeps its partial key",
        (
            Edit(
                X,
                "            if length_of[block]:\n                self.unpublish_many([block])\n"
                "            head",
                "            if length_of[block]:\n                length += size\n"
                "                continue\n            head",
            ),
        ),
        ("A8",),
    ),
    Mutant(
        "reg-two-keys",
        "HIT.LENGTH",
        "a block that is completed is still found under its partial key",
        (
            Edit(
                X,
                "            if length_of[block]:\n                self.unpublish_many([block])\n"
                "            head",
                "            head",
            ),
        ),
        ("A8",),
    ),
    # --- what may not be keyed --------------------------------------------------------------------
    Mutant(
        "reg-drafts",
        "REG.DRAFT",
        "a block that drafts complete is keyed under the tokens that are known",
        (
            Edit(
                M,
                REGISTERED,
                f"{REGISTERED}"
                "                for g in self.layout.full_ids:\n"
                "                    size = self.layout.sizes[g]\n"
                "                    slot = r.chain.count // size\n"
                "                    if end // size > slot:\n"
                "                        self.pool.index.publish(r.tables[g][slot], g,\n"
                "                            r.chain.digests[-1], (slot + 1) * size)\n",
            ),
        ),
    ),
    Mutant(
        "reg-not-delayed",
        "REG.DELAYED",
        "delayed caching is ignored",
        (Edit(M, " and not delay_caching and not r.loading", " and not r.loading"),),
        ("C11",),
    ),
    Mutant(
        "reg-loading",
        "REG.DELAYED",
        "blocks are keyed while external tokens are on their way",
        (Edit(M, " and not delay_caching and not r.loading", " and not delay_caching"),),
        ("C11", "B4"),
    ),
    Mutant(
        "reg-withdrawn",
        "REG.WITHDRAWN",
        "the keys of a withdrawn chunk stay",
        (Edit(M, "        retract(self.layout, self.pool.index, r)\n", ""),),
        ("B4",),
    ),
    Mutant(
        "reg-withdrawn-state",
        "REG.WITHDRAWN",
        "of a withdrawn chunk only attention's keys go",
        (
            Edit(
                R,
                "    for g, table in enumerate(r.tables):\n        beyond",
                "    for g, table in enumerate(r.tables):\n"
                "        if layout.recurrent[g]:\n            continue\n        beyond",
            ),
        ),
        ("B4",),
    ),
    Mutant(
        "reg-withdrawn-all",
        "REG.ONLY",
        "with a withdrawn chunk the keys of everything that its request holds go",
        (
            Edit(
                R,
                "[block for block in beyond if index.length_of[block] > r.computed]",
                "table",
            ),
            Edit(R, "        beyond = table[r.computed // layout.sizes[g] :]\n", ""),
        ),
        ("F2",),
    ),
    Mutant(
        "reg-lost",
        "REG.LOST",
        "external tokens that never came are keyed as if they had",
        (
            Edit(
                M,
                LOST,
                "        if self.layout.caching and r.computed > r.local:\n"
                "            for g in self.layout.full_ids:\n"
                "                size = self.layout.sizes[g]\n"
                "                for slot in range(r.local // size, r.computed // size):\n"
                "                    self.pool.index.publish(r.tables[g][slot], g,\n"
                "                        r.chain.digests[(slot + 1) * self.layout.units[g]],\n"
                "                        (slot + 1) * size)\n" + LOST,
            ),
        ),
        ("B5",),
    ),
    Mutant(
        "reg-without-caching",
        "REG.ONLY",
        "blocks are keyed although caching is off",
        (Edit(M, "if self.layout.caching and not delay_caching", "if not delay_caching"),),
    ),
    Mutant(
        "reg-evicted-again",
        "REG.ONLY",
        "a block of a running request is keyed again when it was evicted",
        (
            Edit(
                R,
                "    table = r.tables[g]\n    if last",
                "    table = r.tables[g]\n    first = 0\n    if last",
            ),
        ),
        ("F2",),
    ),
    Mutant(
        "reg-dropped-at-end",
        "REG.ONLY",
        "a request that ends takes its keys with it",
        (
            Edit(
                M,
                "        tails = r.tails_first()\n",
                "        tails = r.tails_first()\n"
                "        self.pool.index.unpublish_many(tails[:1])\n",
            ),
        ),
        ("E1",),
    ),
    # --- tables -----------------------------------------------------------------------------------
    Mutant(
        "table-no-lookahead",
        "TABLE.SHAPE",
        "no slots are reserved for lookahead",
        (
            Edit(
                G,
                "        reserve = min(end + lookahead, layout.max_model_len)\n        need",
                "        reserve = min(end, layout.max_model_len)\n        need",
            ),
        ),
    ),
    Mutant(
        "table-no-first-lookahead",
        "TABLE.SHAPE",
        "no slots are reserved for lookahead at a first grant",
        (Edit(G, "min(end + lookahead, layout.max_model_len))", "end)"),),
    ),
    Mutant(
        "table-past-the-end",
        "TABLE.SHAPE",
        "lookahead is reserved beyond the longest length of a request",
        (
            Edit(
                G,
                "        reserve = min(end + lookahead, layout.max_model_len)\n        need",
                "        reserve = end + lookahead\n        need",
            ),
        ),
    ),
    Mutant(
        "table-states-kept",
        "TABLE.SHAPE",
        "a recurrent table keeps the state before the one that is needed",
        (
            Edit(
                G,
                "self._give_back(r, g, (r.computed - 1) // size)",
                "self._give_back(r, g, max((r.computed - 1) // size - 1, r.low[g]))",
            ),
        ),
    ),
    Mutant(
        "table-state-given-back",
        "TABLE.SHAPE",
        "the state that the chunk starts from is given back with those before it",
        (
            Edit(
                G,
                "self._give_back(r, g, (r.computed - 1) // size)",
                "self._give_back(r, g, (r.computed - 1) // size + 1)",
            ),
            Edit(
                G,
                "            if r.low[g] < (r.computed - 1) // size:\n",
                "            if r.computed and r.computed % size == 0 and end > r.computed"
                " and r.low[g] < (r.computed - 1) // size:\n",
            ),
        ),
        ("C1",),
    ),
    Mutant(
        "table-new-short",
        "TABLE.NEW",
        "of the blocks that come into a table only the first is announced",
        (Edit(G, "new_blocks.append(tuple(blocks))", "new_blocks.append(tuple(blocks[:1]))"),),
        ("C7",),
    ),
    Mutant(
        "table-new-hits",
        "TABLE.NEW",
        "hit blocks are announced as new",
        (
            Edit(
                G,
                "return tuple([table[s] for s in fresh if s < known] + table[known:])",
                "return tuple(table)",
            ),
        ),
        ("C7",),
    ),
    Mutant(
        "table-new-order",
        "TABLE.WORKER",
        "new blocks are announced from the last",
        (Edit(G, "new_blocks.append(tuple(blocks))", "new_blocks.append(tuple(blocks[::-1]))"),),
        ("C7",),
    ),
    Mutant(
        "table-new-no-nulls",
        "TABLE.WORKER",
        "null slots are left out of what is announced",
        (
            Edit(
                G,
                "            return tuple(grown)\n",
                "            return tuple(grown[missing:])\n",
            ),
        ),
        ("C7",),
    ),
    Mutant(
        "table-worker-padded",
        "TABLE.WORKER",
        "the worker is told of a null slot that the table does not have",
        (Edit(G, "            return tuple(grown)\n", "            return (0, *grown)\n"),),
        ("C7",),
    ),
    Mutant(
        "table-left-behind",
        "TABLE.SHOWN",
        "the books still show the table of a request that waits again",
        (
            Edit(
                "requests",
                "    def wait(self) -> None:\n",
                "    def wait(self) -> None:\n"
                '        self.last = self.table() if getattr(self, "tables", None) else ()\n',
            ),
            Edit("requests", ' "tail",\n', ' "tail", "last",\n'),
            Edit(
                M,
                "tables={name: r.table() for name, r in requests.items() if r.tables},",
                "tables={name: r.table() if r.tables else r.last for name, r in requests.items()},",
            ),
        ),
        ("C9",),
    ),
    Mutant(
        "table-stale",
        "TABLE.SHOWN",
        "the books show a table as it was before states were given back",
        (
            Edit(
                M,
                "tables={name: r.table() for name, r in requests.items() if r.tables},",
                "tables={\n                name: tuple([t for t in r.table()][:-1] + [(0,) * "
                "len(r.table()[-1])]) if len(r.tables) > 1 else r.table()\n"
                "                for name, r in requests.items() if r.tables},",
            ),
        ),
        ("C9",),
    ),
]
