"""Faults of FENCE, PIN and DATA: what steps and connectors may still touch (design 4.6, 4.7)."""

from __future__ import annotations

from kvspec.mutants.load import Edit
from kvspec.mutants.model import Mutant

M, F, T, G, P = "manager", "fences", "offers", "grants", "pool"
WAITS = "if self.deferral and fence > self.processed:"
KILLED = "        self.offers.kill(r)\n\n    def finish"
PINNED = "            self.pool.hold_many(blocks)\n            r.pins.extend(blocks)\n"
PINS_BACK = "        self.pool.drop_many(r.pins)\n"
ADDED = "        self.offers.add(r, g, moved, length)\n"
RELEASED = "        self.fences.release(tails, r.last_step)\n"
SHOWN_COUNTS = "refcounts={BlockId(b): n for b, n in enumerate(self.pool.refs) if n},"

MUTANTS = [
    # --- fences -----------------------------------------------------------------------------------
    Mutant(
        "fence-never",
        "FENCE.HELD",
        "blocks are freed although a step in flight may touch them",
        (Edit(F, WAITS, "if False:"),),
        ("B1",),
    ),
    Mutant(
        "fence-not-at-end",
        "FENCE.HELD",
        "blocks of a request that ends or is preempted do not wait",
        (Edit(M, RELEASED, "        self.fences.release(tails, 0)\n"),),
        ("B1",),
    ),
    Mutant(
        "fence-not-detached",
        "FENCE.HELD",
        "detached blocks are freed although a step in flight may touch them",
        (
            Edit(
                M,
                "self.fences.release(held.blocks[::-1], held.fence)",
                "self.fences.release(held.blocks[::-1], 0)",
            ),
        ),
        ("B1",),
    ),
    Mutant(
        "fence-not-states",
        "FENCE.HELD",
        "states given back do not wait for the step that reads them",
        (
            Edit(
                G,
                "self.fences.release([table[slot] for slot in slots], r.last_step)",
                "self.fences.release([table[slot] for slot in slots], 0)",
            ),
        ),
        ("B1",),
    ),
    Mutant(
        "fence-last-step-lost",
        "FENCE.HELD",
        "a request that was preempted forgets its last step, which its blocks still wait for",
        (
            Edit(
                "requests",
                "        self.chunk_end: int = 0\n",
                "        self.chunk_end: int = 0\n        self.last_step = 0\n",
            ),
        ),
        ("B1",),
    ),
    Mutant(
        "fence-one-short",
        "FENCE.HELD",
        "blocks wait for the step before the last one that touches them",
        (
            Edit(
                F,
                WAITS,
                "fence -= fence > self.processed + 1\n        "
                "if self.deferral and fence > self.processed:",
            ),
        ),
        ("B1",),
    ),
    Mutant(
        "fence-into-load",
        "FENCE.EXTERNAL",
        "a block that a step in flight writes is given to external tokens, books unseen",
        (Edit(F, WAITS, "if False:"),),
        ("B1",),
        hidden=True,
    ),
    Mutant(
        "fence-never-opens",
        "FENCE.REACHED",
        "what waits behind a fence is never freed",
        (
            Edit(
                F,
                "        if reached is not None:\n            self.pool.drop_many(reached)\n",
                "        pass\n",
            ),
        ),
        ("B1", "G2"),
    ),
    Mutant(
        "fence-one-late",
        "FENCE.REACHED",
        "what waits behind a fence is freed a step late",
        (
            Edit(
                F,
                "self.fenced.pop(self.processed, None)",
                "self.fenced.pop(self.processed - 1, None)",
            ),
        ),
        ("G2",),
    ),
    Mutant(
        "fence-first-list",
        "FENCE.REACHED",
        "of the lists that wait behind one fence only the first is freed",
        (
            Edit(
                F,
                "self.fenced.setdefault(fence, []).extend(blocks)",
                "self.fenced.setdefault(fence, blocks)",
            ),
        ),
        ("B1",),
    ),
    Mutant(
        "fence-retained-at-once",
        "FENCE.RETAINED",
        "endpoints are freed although their step is in flight",
        (
            Edit(
                F,
                "return ends if self.release(ends, fence) else []",
                "self.pool.drop_many(ends)\n        return ends",
            ),
        ),
        ("B5",),
    ),
    Mutant(
        "fence-retained-untold",
        "FENCE.RETAINED",
        "endpoints that are freed are not named",
        (
            Edit(
                F,
                "return ends if self.release(ends, fence) else []",
                "self.release(ends, fence)\n        return []",
            ),
        ),
        ("B5",),
    ),
    Mutant(
        "fence-retained-all",
        "FENCE.RETAINED",
        "endpoints of steps behind the fence that was asked for are released too",
        (
            Edit(
                F,
                "while self.retained and self.retained[0][0] <= fence:",
                "while self.retained:",
            ),
        ),
        ("B5",),
    ),
    Mutant(
        "fence-retained-order",
        "FENCE.RETAINED",
        "endpoints are released in the order in which they were drained",
        (Edit(F, "        ends.reverse()\n", ""),),
    ),
    Mutant(
        "fence-retained-early",
        "COPY.RETAINED",
        "endpoints are held for the step before the one that copies",
        (
            Edit(
                F,
                "self.retained.append((self.dispatched + 1, ends))",
                "self.retained.append((self.dispatched, ends))",
            ),
        ),
        ("B5",),
    ),
    # --- hand-off ---------------------------------------------------------------------------------
    Mutant(
        "pin-owner-handed",
        "PIN.HANDOFF",
        "the owner's own block is handed off, which no longer holds the state",
        (Edit(G, ADDED, "        self.offers.add(r, g, own, length)\n"),),
        ("C7", "B5"),
    ),
    Mutant(
        "pin-boundary",
        "PIN.HANDOFF",
        "a hand-off states the block's end and not its boundary",
        (
            Edit(
                G,
                ADDED,
                "        size = self.layout.sizes[g]\n"
                "        self.offers.add(r, g, moved, -(-length // size) * size)\n",
            ),
        ),
        ("C7", "C12"),
    ),
    Mutant(
        "pin-no-handoff",
        "PIN.HANDOFF",
        "nothing is ever handed off",
        (Edit(G, ADDED, ""),),
    ),
    Mutant(
        "pin-first-handoff",
        "PIN.HANDOFF",
        "where several groups' tails move, only the first is handed off",
        (Edit(G, ADDED, "        if not r.offers:\n    " + ADDED),),
    ),
    Mutant(
        "pin-twice",
        "PIN.HANDOFF",
        "a hand-off is told again when the lists are drained again",
        (
            Edit(
                M,
                "        offloads = self.offers.drain()\n",
                "        offloads = self.offers.drain()\n"
                '        told = getattr(self, "told", {})\n'
                "        self.told = offloads\n"
                "        offloads = offloads or {n: o for n, o in told.items() if n in "
                "self.requests}\n",
            ),
        ),
        ("C7",),
    ),
    Mutant(
        "pin-handed-unasked",
        "PIN.HANDOFF",
        "tails are handed off without a connector",
        (Edit(T, "        if self.connected:\n", "        if True:\n"),),
    ),
    Mutant(
        "pin-outlives",
        "PIN.DIES",
        "a hand-off that was not drained outlives its request",
        (Edit(M, KILLED, "\n    def finish"),),
        ("C9",),
    ),
    Mutant(
        "pin-told-of-the-dead",
        "PIN.DIES",
        "a hand-off that died with its request is told of all the same, and pins nothing",
        (
            Edit(T, '__slots__ = ("connected", ', '__slots__ = ("dead", "connected", '),
            Edit(
                T,
                "        self.of_block: dict[int, Request] = {}\n",
                "        self.of_block: dict[int, Request] = {}\n        self.dead = {}\n",
            ),
            Edit(
                T,
                "            self.kill(r)\n",
                "            self.kill(r)\n            del self.dead[r.name]\n",
            ),
            Edit(
                T,
                "        assert not self.of_block\n        return drained",
                "        told = {**self.dead, **drained}\n"
                "        self.dead = {}\n"
                "        return told",
            ),
            Edit(
                T,
                "        if r.offers:\n            del self.offering",
                "        if r.offers:\n"
                "            self.dead[r.name] = r.offered()\n"
                "            del self.offering",
            ),
        ),
        ("C9",),
    ),
    Mutant(
        "pin-outlives-detach",
        "PIN.DIES",
        "a hand-off that was not drained outlives the detaching of its request's blocks",
        (
            Edit(
                M,
                "        self.offers.kill(r)\n        r.wait()\n",
                "        offers = r.offers\n        r.wait()\n        r.offers = offers\n",
            ),
        ),
        ("C9",),
    ),
    Mutant(
        "pin-stale-offer",
        "PIN.HANDOFF",
        "a block that was taken anew is still handed off for its former owner",
        (Edit(G, "        self.offers.forget(blocks)\n", ""),),
        ("C9", "B5"),
    ),
    # --- pins -------------------------------------------------------------------------------------
    Mutant(
        "pin-not-held",
        "PIN.HELD",
        "draining a hand-off pins nothing",
        (Edit(T, PINNED, "            r.pins.extend([])\n"),),
        ("A4", "B5"),
    ),
    Mutant(
        "pin-in-free-list",
        "FREE.EXACT",
        "a pinned block stays in the free list",
        (
            Edit(
                T,
                PINNED,
                "            for block in blocks:\n"
                "                self.pool.refs[block] += 1\n"
                "            r.pins.extend(blocks)\n",
            ),
        ),
        ("A4",),
    ),
    Mutant(
        "pin-leaked",
        "PIN.DROPPED",
        "pins stay when their request ends",
        (Edit(M, PINS_BACK, ""),),
        ("A11",),
    ),
    Mutant(
        "pin-leaked-detached",
        "PIN.DROPPED",
        "pins of detached blocks stay when those are freed",
        (Edit(M, "        self.pool.drop_many(held.pins)\n", ""),),
        ("A11",),
    ),
    Mutant(
        "pin-dropped-when-read",
        "REF.COUNT",
        "a pin goes when the connector has read, and not with its request's blocks",
        (
            Edit(
                M,
                '        """The pins stay until the blocks are freed. O(1)."""\n'
                "        self.asked = None\n",
                '        """Drop them."""\n'
                "        self.asked = None\n"
                "        if request in self.requests:\n"
                "            r = self.requests[request]\n"
                "            self.pool.drop_many(r.pins)\n"
                "            r.pins = []\n",
            ),
        ),
        ("A11",),
    ),
    Mutant(
        "pin-dropped-at-preempt",
        "PIN.DROPPED",
        "pins survive a preemption and go with the request",
        (
            Edit(
                M,
                "        self._take_back(r)\n        r.wait()\n",
                "        pins, r.pins = r.pins, []\n        self._take_back(r)\n"
                "        r.wait()\n        r.pins = pins\n",
            ),
        ),
        ("A11",),
    ),
    Mutant(
        "pin-shown-once",
        "REF.PINS",
        "the books show no pins",
        (Edit(M, "pins=cast(Table, tuple(sorted(pins))),", "pins=(),"),),
        ("A11",),
    ),
    Mutant(
        "pin-written",
        "PIN.CONTENT",
        "the owner's own block is handed off and then written, books unseen",
        (Edit(G, ADDED, "        self.offers.add(r, g, own, length)\n"),),
        ("B5",),
        hidden=True,
    ),
    Mutant(
        "pin-written-unread",
        "PIN.CONTENT",
        "the same, by a target that does not say when the connector reads",
        (
            Edit(G, ADDED, "        self.offers.add(r, g, own, length)\n"),
            Edit(
                M,
                '        """The connector\'s business. O(1)."""\n',
                "        from kvspec.adapter import Unsupported\n\n"
                '        raise Unsupported("unseen")\n',
            ),
        ),
        ("B5",),
        hidden=True,
    ),
    Mutant(
        "pin-wrong-state",
        "DATA.OFFLOAD",
        "a hand-off states another boundary, books unseen",
        (
            Edit(
                G,
                ADDED,
                "        self.offers.add(r, g, moved, length - self.layout.hash_unit or length)\n",
            ),
        ),
        ("B5", "C12"),
        hidden=True,
    ),
]
