"""Every rule by its id: the objects that reports print, tests are marked with and the book lists.

`holds(observed, allowed)` is the clause's predicate; what is observed and what is allowed is worked
out by the functions of the judge, which name the clause. Ids are never reused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

Predicate = Callable[[Any, Any], bool]


class Profile(Enum):
    """What a target lets us see, and so what it can be held to (design section 1)."""

    SOUNDNESS = "soundness"
    ACCOUNTING = "accounting"
    EXACT = "exact"

    rank: int
    """The higher, the more is seen: the order in which they stand above."""

    def __init__(self, _: str) -> None:
        self.rank = len(type(self).__members__)

    def covers(self, other: Profile) -> bool:
        """Whether a target of this profile is held to the clauses of the other."""
        return self.rank >= other.rank


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule. `profile` is the lowest at which a target is held to it.

    A clause that `follows_from` others adds a name to them and an earlier warning: whatever breaks
    it goes on to break one of those, if it is let go on.
    """

    id: str
    statement: str
    why: str
    holds: Predicate
    profile: Profile = Profile.ACCOUNTING
    reports: tuple[str, ...] = ()
    follows_from: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]

    def __reduce__(self) -> tuple[Callable[[str], Clause], tuple[str]]:
        """A clause goes to another process by its id."""
        return clause_of, (self.id,)


CLAUSES: dict[str, Clause] = {}
"""All clauses by id, in the order of the book."""


def clause_of(id: str) -> Clause:
    """The clause of an id."""
    return CLAUSES[id]


def _clause(
    id: str,
    statement: str,
    why: str,
    holds: Predicate,
    *reports: str,
    profile: Profile = Profile.ACCOUNTING,
    follows_from: tuple[str, ...] = (),
) -> Clause:
    assert id not in CLAUSES, f"clause id {id} is used twice"
    CLAUSES[id] = Clause(id, statement, why, holds, profile, reports, follows_from)
    return CLAUSES[id]


def equal(observed: Any, allowed: Any) -> bool:
    """What was observed is the one thing allowed."""
    return bool(observed == allowed)


def one_of(observed: Any, allowed: Any) -> bool:
    """What was observed is among the things allowed."""
    return observed in allowed


def subset(observed: Any, allowed: Any) -> bool:
    """Everything observed is among the things allowed."""
    return set(observed) <= set(allowed)


def superset(observed: Any, allowed: Any) -> bool:
    """Everything required is among the things observed."""
    return set(observed) >= set(allowed)


def disjoint(observed: Any, allowed: Any) -> bool:
    """Nothing observed is among the things that are ruled out."""
    return set(observed).isdisjoint(allowed)


def first_then(observed: Any, allowed: Any) -> bool:
    """Two bags, the first of them before the second."""
    first, rest = allowed
    border = len(first)
    return same_bag(observed[:border], first) and same_bag(observed[border:], rest)


def same_bag(observed: Any, allowed: Any) -> bool:
    """The same things the same number of times, in any order."""
    return sorted(observed) == sorted(allowed)


SOUND = Profile.SOUNDNESS

# --- HASH: what a prefix is called (design 4.1) -------------------------------------------------

HASH_INJECTIVE = _clause(
    "HASH.INJECTIVE",
    "Two different prefixes, or one prefix under two identities, never share a key.",
    "A shared key hands one tenant the cache, and so the text, of another.",
    equal,
    "atlas D1: GHSA-rm76-4mrf-v9r8, vLLM #12621",
    "atlas D3: CVE-2025-46570",
    "atlas D4: vLLM #44701",
    "atlas D5: vLLM #30931",
)
HASH_STABLE = _clause(
    "HASH.STABLE",
    "Equal prefixes with equal identities get equal keys.",
    "A key that depends on more than its prefix makes a cache that never hits, silently.",
    equal,
    "atlas D8: SGLang #19570, LMCache #2136",
)

# --- HIT: lookup (design 4.2) -------------------------------------------------------------------

HIT_LIMIT = _clause(
    "HIT.LIMIT",
    "A hit leaves at least one token of the request to compute.",
    "Without a token to compute there are no logits to sample from.",
    lambda observed, allowed: 0 <= observed <= allowed,
    "atlas F7: LMCache #3322, vLLM #11186",
    "atlas C12: vLLM #51094",
    profile=SOUND,
)
HIT_ALIGNED = _clause(
    "HIT.ALIGNED",
    "A hit ends on a multiple of the hash unit in fine mode, else of the scheduler block.",
    "Elsewhere no digest names the prefix, so nothing could have vouched for the content.",
    lambda observed, allowed: observed % allowed == 0,
    follows_from=("HIT.LENGTH", "HIT.CONNECTOR"),
)
HIT_SHAPE = _clause(
    "HIT.SHAPE",
    "Each group brings as many slots as cover its length; all but the last of a recurrent group "
    "are null, none of a full group is.",
    "A group whose blocks fall short of the declared length resumes from what was never computed.",
    equal,
    "atlas C4: vLLM #46281, #47861",
    "atlas C1: vLLM #45238",
    profile=SOUND,
)
HIT_LENGTH = _clause(
    "HIT.LENGTH",
    "The hit is the longest length that every group can serve; the eagle drop is applied once.",
    "Shorter wastes work without a sound; longer declares computed what some group never computed.",
    equal,
    "atlas C5: vLLM #32802, #33270",
    "atlas C1: vLLM #45238",
    "atlas D3: CVE-2025-46570",
)
HIT_FOUND = _clause(
    "HIT.FOUND",
    "Each block of a hit is keyed for this request's own prefix at the slot it serves.",
    "A block found under another prefix changes someone's text.",
    one_of,
    "atlas A8: vLLM #4764, kvcached #362",
)
HIT_BOUNDARY = _clause(
    "HIT.BOUNDARY",
    "The shared-prefix boundary is the longest reach of any single group where that exceeds the "
    "hit, else 0.",
    "It tells the scheduler where a state is worth keeping.",
    equal,
    "atlas C1: vLLM #45238",
)
HIT_CONNECTOR = _clause(
    "HIT.CONNECTOR",
    "A connector that supports divergence is told attention's own length and whether another group "
    "falls short; where some group reaches further, and for any other connector, the joint hit.",
    "The larger of two lengths is no length that was computed in every group.",
    equal,
    "atlas C11: vLLM #46453",
)
HIT_PURE = _clause(
    "HIT.PURE",
    "A lookup or a truncation changes nothing: no count, no key, no place in the free list.",
    "A lookup that takes something leaks it whenever admission then fails.",
    equal,
    "atlas A9: SGLang #21404, #16067",
)

# --- ALLOC: allocation (design 4.3) -------------------------------------------------------------

ALLOC_RANGE = _clause(
    "ALLOC.RANGE",
    "A block handed out is a block of the pool and not the null block.",
    "Kernels hard-code block 0 as the one whose writes are dropped.",
    one_of,
    "atlas F5: kvcached #398",
    profile=SOUND,
)
ALLOC_FREE = _clause(
    "ALLOC.FREE",
    "A block handed out has no holder, and is handed out once.",
    "Two requests that write one block read each other's text.",
    equal,
    "atlas A5: TensorRT-LLM #14937",
    "atlas A1: vLLM #42571",
    "atlas B1: vLLM #45357",
    profile=SOUND,
)
ALLOC_HITS = _clause(
    "ALLOC.HITS",
    "All hits of a request, in all groups, are held before any block is taken for it.",
    "Otherwise a request is handed its own hit as an empty block.",
    disjoint,
    "atlas A2: vLLM #44409",
    "atlas A3: vLLM #10507",
    profile=SOUND,
    follows_from=("ALLOC.FREE",),
)
ALLOC_CAPACITY = _clause(
    "ALLOC.CAPACITY",
    "A grant is refused exactly when the blocks it would take from the pool exceed those free; a "
    "local state that external tokens replace may be counted or not.",
    "A wrong estimate either fails half-way or starves a request that fits.",
    one_of,
    "atlas C9: vLLM #46384",
    "atlas G1: vLLM #39734",
    "atlas A3: TensorRT-LLM #12682",
)
ALLOC_REFUSAL = _clause(
    "ALLOC.REFUSAL",
    "A refusal changes nothing, except that blocks no longer needed may have gone back.",
    "What a refused request took is lost for everyone.",
    one_of,
    "atlas A9: SGLang #21404",
    profile=SOUND,
)
ALLOC_NOTHING = _clause(
    "ALLOC.NOTHING",
    "A grant of no new and no external tokens is an error.",
    "A request that is granted nothing in every step holds its blocks for ever.",
    equal,
    "atlas G4: 1CatAI/1Cat-vLLM #472",
    profile=SOUND,
)
ALLOC_ZEROED = _clause(
    "ALLOC.ZEROED",
    "Every block taken for a group that asks for it is on the zeroing list of the step.",
    "Left-over bytes of another type decode to NaN, and a mask that multiplies by 0 keeps it.",
    superset,
    "atlas H1: vLLM #35219, #47574",
    profile=SOUND,
)
ALLOC_ZEROED_ONLY = _clause(
    "ALLOC.ZEROED_ONLY",
    "The zeroing list names only blocks taken in this pass and not for external tokens.",
    "Zeroing wipes what another request reads, or races with a load.",
    subset,
    "atlas H2: vLLM #50276",
    profile=SOUND,
)

# --- REG: registration (design 4.3) -------------------------------------------------------------

REG_COMPLETE = _clause(
    "REG.COMPLETE",
    "A full block that the granted tokens complete is keyed, under the digest of its end.",
    "An unkeyed block is work that nobody can reuse.",
    equal,
)
REG_EXACT = _clause(
    "REG.EXACT",
    "A recurrent block is keyed at the length whose state it will hold, if that is a boundary, and "
    "under no other.",
    "A state labelled with another length is applied twice or not at all.",
    equal,
    "atlas C2: vLLM #51113",
)
REG_PARTIAL = _clause(
    "REG.PARTIAL",
    "The prompt's last hash boundary, when inside a block, is keyed as a partial entry: in full "
    "groups once computed, in recurrent groups by a chunk that ends exactly there.",
    "It is what lets a conversation go on from where its last turn ended.",
    equal,
    "atlas C9: vLLM #46384",
)
REG_PROMOTED = _clause(
    "REG.PROMOTED",
    "When a partially keyed block is completed, the full key takes the place of the partial one.",
    "Two keys for one block outlive each other's eviction.",
    equal,
    "atlas A8: vLLM #4764",
)
REG_DRAFT = _clause(
    "REG.DRAFT",
    "Draft tokens are never keyed.",
    "A rejected draft would be found as if it had been said.",
    equal,
)
REG_DELAYED = _clause(
    "REG.DELAYED",
    "Nothing is keyed at a grant with delayed caching, nor while external tokens are on their way.",
    "What has not arrived cannot be read.",
    equal,
    "atlas C11: vLLM #46453",
)
REG_WITHDRAWN = _clause(
    "REG.WITHDRAWN",
    "No key remains for what a withdrawn chunk would have written.",
    "A retry of the same prefix would resume from a state that was never written.",
    equal,
    "atlas B4: vLLM #56525, SGLang #38319",
)
REG_LOST = _clause(
    "REG.LOST",
    "After a failed load nothing of the lost span is keyed.",
    "The blocks exist but their content never arrived.",
    equal,
    "atlas B5: vLLM #29870",
)
REG_ONLY = _clause(
    "REG.ONLY",
    "Nothing is keyed beyond what these rules key, and everything they key stays keyed until "
    "something drops it.",
    "A key that no rule explains is one that no rule will remove.",
    equal,
    "atlas A8: vLLM #4764, kvcached #362",
    "atlas E1: vLLM #55092",
    "atlas F2: TensorRT-LLM #17145",
)

# --- TABLE: block tables ------------------------------------------------------------------------

TABLE_SHAPE = _clause(
    "TABLE.SHAPE",
    "After a grant a table has a slot for every position the step needs, null where none is "
    "needed, and keeps the blocks it had.",
    "The worker addresses KV by slot.",
    equal,
    "atlas C7: vLLM #51766",
    profile=SOUND,
)
TABLE_NEW = _clause(
    "TABLE.NEW",
    "The new blocks of a grant are exactly those that came into the table with it.",
    "The worker hears of nothing else.",
    same_bag,
    "atlas C7: vLLM #51766",
    profile=SOUND,
)
TABLE_WORKER = _clause(
    "TABLE.WORKER",
    "The table that the worker builds from what grants announce agrees with the manager's at every "
    "slot the step reads or writes.",
    "A worker whose table differs writes into someone else's block.",
    equal,
    "atlas C7: vLLM #51766",
    profile=SOUND,
)
TABLE_SHOWN = _clause(
    "TABLE.SHOWN",
    "The tables shown are those that were granted, and a request that holds nothing has none.",
    "An entry left behind is served to the next request of that name.",
    equal,
    "atlas C9: vLLM #46384",
)

# --- COW: copy-on-write (design 4.4) ------------------------------------------------------------

COW_HITTER = _clause(
    "COW.HITTER",
    "A request granted on a partial hit gets a private block in the hit's last slot, and the copy "
    "from the shared one is queued.",
    "It is about to write past the hit in a block that others can still find.",
    equal,
    "atlas C9: vLLM #46384",
    profile=SOUND,
)
COW_OWNER = _clause(
    "COW.OWNER",
    "The owner of a keyed partial state that goes on in the same block queues one copy from its "
    "own block to a fresh one, and queues none otherwise.",
    "The worker's table is append-only, so the entry moves and not the owner.",
    equal,
    "atlas C7: vLLM #51766",
)
COW_MOVED = _clause(
    "COW.MOVED",
    "When an owner goes on, the copy's destination takes over the key and its own block has none.",
    "The own block's state is about to move past what the key promises.",
    equal,
    "atlas C8: vLLM #57908",
)
COW_KEPT = _clause(
    "COW.KEPT",
    "A block that was copied from by a hitter keeps its key.",
    "The entry is as good as before.",
    equal,
)
COW_UNKEYED = _clause(
    "COW.UNKEYED",
    "The private block of a hitter starts unkeyed.",
    "It is keyed only when its own request completes a boundary.",
    equal,
)
COW_WRITE = _clause(
    "COW.WRITE",
    "No position that a key promises or that another request holds is written.",
    "Whoever reads it next reads something else than was promised.",
    disjoint,
    "atlas C8: vLLM #57908",
    profile=SOUND,
    follows_from=("COW.HITTER", "COW.OWNER", "ALLOC.FREE"),
)

# --- COPY: the step's copies --------------------------------------------------------------------

COPY_QUEUED = _clause(
    "COPY.QUEUED",
    "The copies drained are exactly those that the step's grants queued.",
    "A copy lost is a block of left-overs; a copy too many overwrites.",
    same_bag,
    "atlas C7: vLLM #51766",
    profile=SOUND,
)
COPY_SOURCE = _clause(
    "COPY.SOURCE",
    "The source of a copy is a block of the request's own table, or of its hit.",
    "Any other block's content is another request's.",
    subset,
    "atlas B5: vLLM #29870",
    profile=SOUND,
)
COPY_CONFLICT = _clause(
    "COPY.CONFLICT",
    "In one step no block is the destination of two copies, nor both destination and source.",
    "Copies run in parallel: the result would depend on chance.",
    disjoint,
    "atlas H5: vllm-gaudi #329",
    profile=SOUND,
    follows_from=("ALLOC.FREE", "DATA.READ", "DATA.STATE"),
)
COPY_RETAINED = _clause(
    "COPY.RETAINED",
    "Draining the copies returns both endpoints of each, still referenced.",
    "An endpoint that is freed before the copy ran is copied from, or to, its next owner.",
    same_bag,
    "atlas B5: vLLM #29870",
)

# --- STEP: order within and between steps (design 4.5) ------------------------------------------

STEP_DEFER = _clause(
    "STEP.DEFER",
    "A request whose hit needs a state, or a copy of positions, that this step still writes is not "
    "granted in this step.",
    "Copies and state reads come before the step's writes: it would read what is not yet there.",
    equal,
    "atlas B3: vLLM #29387",
    profile=SOUND,
    follows_from=("DATA.READ", "DATA.STATE"),
)
STEP_NUMBER = _clause(
    "STEP.NUMBER",
    "Steps are numbered 1, 2, 3, ... in the order of their dispatch.",
    "Fences name steps by their number.",
    equal,
    profile=SOUND,
)

# --- FENCE: what steps in flight may touch (design 4.6) -----------------------------------------

FENCE_HELD = _clause(
    "FENCE.HELD",
    "With deferral on, blocks that leave a request which has a step in flight stay held.",
    "The step still reads and writes them, and a load into a freed block is not ordered with it.",
    equal,
    "atlas B1: vLLM #45357",
)
FENCE_REACHED = _clause(
    "FENCE.REACHED",
    "Blocks behind a fence are released when the fence's step has been processed.",
    "A fence that never opens is a leak, and preempting for what it withholds never ends.",
    equal,
    "atlas B1: vLLM #45357",
    "atlas G2: vLLM #45388",
)
FENCE_RETAINED = _clause(
    "FENCE.RETAINED",
    "Releasing retained endpoints frees them at once when deferral is off or the fence is reached, "
    "the last drained first, else queues them behind it.",
    "The endpoints are needed until the copy has run.",
    equal,
    "atlas B5: vLLM #29870",
)
FENCE_EXTERNAL = _clause(
    "FENCE.EXTERNAL",
    "No block that a step in flight reads or writes is given to external tokens.",
    "A connector writes whenever it likes.",
    disjoint,
    "atlas B1: vLLM #45357",
    profile=SOUND,
    follows_from=("ALLOC.FREE",),
)

# --- PIN: hand-off to a connector (design 4.7) --------------------------------------------------

PIN_HANDOFF = _clause(
    "PIN.HANDOFF",
    "When a producer's tail moves, the copy's destination is handed to the connector with its "
    "exact boundary, once; nothing else is.",
    "The owner's block no longer holds that state.",
    equal,
    "atlas C7: vLLM #51766",
)
PIN_DIES = _clause(
    "PIN.DIES",
    "A hand-off that was not drained dies with its request.",
    "Nobody would ever drop the pin.",
    disjoint,
    "atlas C9: vLLM #46384",
)
PIN_HELD = _clause(
    "PIN.HELD",
    "A drained hand-off is pinned; if it had no holder left, it leaves the free list.",
    "A pinned block in the free list is handed to the next request while the connector reads.",
    equal,
    "atlas A4: TensorRT-LLM #12667",
)
PIN_DROPPED = _clause(
    "PIN.DROPPED",
    "A pin goes, exactly once, when its request's blocks or its detached blocks are freed.",
    "A pin too many leaks the block; one too few frees it under its reader.",
    equal,
    "atlas A11: mini-sglang #52",
    "atlas A1: vLLM #42571",
)
PIN_CONTENT = _clause(
    "PIN.CONTENT",
    "A pinned block is not written.",
    "The connector stores what it reads under the key it was given.",
    disjoint,
    "atlas B5: vLLM #29870",
    profile=SOUND,
)

# --- REF, FREE, EVICT: counts, free list, eviction (design 4.8) ---------------------------------

REF_COUNT = _clause(
    "REF.COUNT",
    "A block's reference count is the number of its holders: tables, retained endpoints, pins, "
    "detached lists, lists behind a fence.",
    "Every other fault of ownership begins with a count that is wrong.",
    equal,
    "atlas A1: vLLM #42571",
    "atlas A4: TensorRT-LLM #12667",
    "atlas A11: mini-sglang #52",
)
REF_DETACHED = _clause(
    "REF.DETACHED",
    "Detaching returns every block that the request held, its pins first, and frees none.",
    "What is not listed will never be freed.",
    first_then,
    "atlas A1: vLLM #42571",
)
REF_PINS = _clause(
    "REF.PINS",
    "The pins shown are those of drained hand-offs whose blocks have not been freed.",
    "A pin nobody can name is never dropped.",
    same_bag,
    "atlas A11: mini-sglang #52",
)
FREE_EXACT = _clause(
    "FREE.EXACT",
    "The free list holds every block whose count is 0, except the null block, and no other.",
    "A held block in the free list is handed out twice; a free one outside is lost.",
    equal,
    "atlas A4: TensorRT-LLM #12667",
    "atlas A5: TensorRT-LLM #14937",
)
FREE_ONCE = _clause(
    "FREE.ONCE",
    "A block stands in the free list at most once.",
    "Each extra place hands it to one more owner.",
    equal,
    "atlas A1: vLLM #42571",
    "atlas A5: TensorRT-LLM #14937",
)
FREE_TAIL = _clause(
    "FREE.TAIL",
    "Of the keyed blocks of one table, or of one list, that are freed together, later ones are "
    "reused before earlier ones.",
    "A prefix whose head is gone cannot be hit however much of its tail remains.",
    equal,
)
EVICT_TAKEN = _clause(
    "EVICT.TAKEN",
    "A block that is taken loses every key it had.",
    "A stale key leads to the next owner's content.",
    equal,
    "atlas A8: vLLM #4764, kvcached #362",
)
EVICT_ASKED = _clause(
    "EVICT.ASKED",
    "Evicting a block drops its keys and changes no count.",
    "Its holders go on with what they have.",
    equal,
    "atlas F2: TensorRT-LLM #17145",
)
EVICT_RESET = _clause(
    "EVICT.RESET",
    "A reset succeeds exactly when nothing is held.",
    "New weights make every key a lie, but a holder's blocks must not change under it.",
    equal,
    "atlas F2: TensorRT-LLM #17145",
    "atlas D5: vLLM #30931",
)
EVICT_CLEARED = _clause(
    "EVICT.CLEARED",
    "After a reset no key remains, and a reset that did not succeed drops none.",
    "One key left is one stale prefix served.",
    equal,
    "atlas F2: TensorRT-LLM #17145",
)

# --- TRUNC: truncation (design 4.9) -------------------------------------------------------------

TRUNC_VIEW = _clause(
    "TRUNC.VIEW",
    "A truncated hit is the same hit with each group cut by its own block size, nulls kept.",
    "A view that copies or renumbers is another hit.",
    equal,
    "atlas C11: vLLM #48425",
    profile=SOUND,
)
TRUNC_ERROR = _clause(
    "TRUNC.ERROR",
    "Cutting inside some group's block, or beyond what a full group covers, is an error.",
    "Only a recurrent state can be supplied from outside.",
    equal,
    "atlas C11: vLLM #51468",
    profile=SOUND,
)

# --- CHUNK: the scheduler's chunk rule (design 4.10) --------------------------------------------

CHUNK_END = _clause(
    "CHUNK.END",
    "A chunk ends at the earliest stop strictly inside it, on the block grid unless it reaches the "
    "end or a whole block fits no step.",
    "A chunk that ends elsewhere leaves a state that no key can name.",
    equal,
    "atlas C2: vLLM #51113",
    profile=SOUND,
)
CHUNK_ADVANCE = _clause(
    "CHUNK.ADVANCE",
    "Where a whole block fits no step, a chunk still computes at least one token.",
    "Otherwise the request is scheduled for nothing in every step, for ever.",
    lambda observed, allowed: observed >= allowed,
    "atlas G4: 1CatAI/1Cat-vLLM #472, local-inference-lab/vllm #394",
    profile=SOUND,
)

# --- DATA: what is read (design 4.11) -----------------------------------------------------------

DATA_READ = _clause(
    "DATA.READ",
    "Every position that a request reads in a full group holds what computing its own prefix would "
    "have written there.",
    "This is the sentence that most public cache faults break.",
    equal,
    "atlas A2: vLLM #44409",
    "atlas A8: vLLM #4764",
    "atlas B1: vLLM #45357",
    "atlas C4: vLLM #46281",
    profile=SOUND,
)
DATA_STATE = _clause(
    "DATA.STATE",
    "The recurrent state that a chunk starts from is the state after exactly the tokens before it.",
    "A state one token off changes every later token.",
    equal,
    "atlas B3: vLLM #29387",
    "atlas C2: vLLM #51113",
    "atlas C12: vLLM #51094",
    profile=SOUND,
)
DATA_NULL = _clause(
    "DATA.NULL",
    "No slot that a step reads or writes is null.",
    "Writes to the null block are dropped, and reads of it are noise.",
    lambda observed, allowed: observed != allowed,
    "atlas F5: kvcached #398",
    profile=SOUND,
    follows_from=("ALLOC.RANGE", "TABLE.SHAPE", "TABLE.NEW", "TABLE.WORKER"),
)
DATA_KEY = _clause(
    "DATA.KEY",
    "A key leads to content of exactly its prefix, from the moment another request may read it.",
    "A key is a promise; the reader has no means to check it.",
    equal,
    "atlas B4: vLLM #56525",
    "atlas C2: vLLM #51113",
    follows_from=(
        "REG.EXACT",
        "REG.WITHDRAWN",
        "REG.LOST",
        "COW.OWNER",
        "ALLOC.ZEROED_ONLY",
        "TABLE.WORKER",
    ),
)
DATA_ZEROED = _clause(
    "DATA.ZEROED",
    "In a group that asks for zeroing, a block that a step writes holds nothing of an earlier "
    "owner.",
    "Kernels read past what was written.",
    lambda observed, allowed: observed != allowed,
    "atlas H1: vLLM #35219",
    profile=SOUND,
    follows_from=("ALLOC.ZEROED",),
)
DATA_OFFLOAD = _clause(
    "DATA.OFFLOAD",
    "A connector that reads a block it was handed finds the state at the stated boundary.",
    "It stores what it finds for everyone to come.",
    equal,
    "atlas B5: vLLM #29870",
    profile=SOUND,
)
DATA_BYTES = _clause(
    "DATA.BYTES",
    "The worker's bytes equal the bytes of the symbolic content, block by block.",
    "What is proved of tags must hold of memory.",
    equal,
    "atlas H5: vllm-gaudi #329",
    profile=SOUND,
)
DATA_KERNEL = _clause(
    "DATA.KERNEL",
    "After every step, memory whose blocks the kernels filled and copied holds the plain worker's "
    "bytes, and nothing outside the named blocks changed.",
    "A wrong copy is silent: it shows as a bad answer, long after.",
    equal,
    "atlas H2: vLLM #50276",
    "atlas H3: vLLM #1486",
    "atlas H4: vLLM #41257",
    profile=SOUND,
)

# --- LIVE: progress -----------------------------------------------------------------------------

LIVE_ALONE = _clause(
    "LIVE.ALONE",
    "When nothing is held and no step is in flight, a request that fits the pool is granted.",
    "Otherwise it waits for ever, and everyone behind it.",
    one_of,
    "atlas G1: vLLM #39734",
    "atlas G2: vLLM #45388",
    profile=SOUND,
)
LIVE_ANSWER = _clause(
    "LIVE.ANSWER",
    "Every event that the language allows is answered, and only what it calls an error is refused.",
    "An engine that stops on a legal event takes every request with it.",
    equal,
    "atlas C11: vLLM #46453",
    "atlas F7: vLLM #49481",
    profile=SOUND,
)
LIVE_EXACT = _clause(
    "LIVE.EXACT",
    "In the exact profile every observation equals the reference's.",
    "An optimized manager must not only be right but choose alike, so that it can replace it.",
    equal,
    profile=Profile.EXACT,
)
