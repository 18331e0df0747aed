"""Registration (design 4.3): what a grant keys, and nothing beyond what is or will be there."""

from __future__ import annotations

from kvspec.spec.case import Case, Ledger
from kvspec.spec.clauses import Profile
from kvspec.spec.digests import make_prefix
from kvspec.spec.registration import (
    full_entries,
    partial_boundary,
    recurrent_entries,
    register,
    retract,
)
from kvspec.spec.state import Request, State
from kvspec.spec.tables import state_slot
from kvspec.spec.types import (
    BlockId,
    Config,
    Group,
    GroupId,
    GroupKind,
    Identity,
    RequestId,
    Tables,
    Token,
)

from .model import about

FULL, STATE = GroupId(0), GroupId(1)
FINE = Config(9, 2, (Group(GroupKind.FULL, 4), Group(GroupKind.MAMBA_ALIGN, 4)), 99)
DRAFTS = Config(9, 1, (Group(GroupKind.FULL, 2),), 99)
FOUR = "blocks of 4 tokens, hash unit 2"
TWELVE = f"{FOUR}, up to 12 tokens"

Entries = list[tuple[int, int]]


@about("REG.PARTIAL", bound=FOUR)
def boundary_is_the_last(prompt: int) -> int:
    """The prompt's last hash boundary is within it, and no later one is.

    pre: prompt >= 1
    post: _ % 2 == 0 and _ <= prompt < _ + 2
    """
    return partial_boundary(FINE, prompt)


@about("REG.PARTIAL", "HIT.ALIGNED", bound="full blocks of 2 tokens, hash unit 1")
def no_partial_entry_outside_fine_mode(prompt: int) -> int:
    """Where hits never end inside a block, nothing is keyed inside one.

    pre: prompt >= 1
    post: _ == 0
    """
    return partial_boundary(DRAFTS, prompt)


@about("REG.COMPLETE", "REG.DRAFT", bound=TWELVE)
def full_keys_are_news(prompt: int, done: int, end: int) -> Entries:
    """Every key of a full group is for a length that this grant completed, in the slot of its
    last token: at a block's end, or at the prompt's last hash boundary.

    pre: 1 <= prompt and 0 <= done <= end <= 12
    post: all(done < length <= end for _slot, length in _)
    post: all(slot * 4 < length <= slot * 4 + 4 for slot, length in _)
    post: all(length % 4 == 0 or length == prompt - prompt % 2 for _slot, length in _)
    """
    return full_entries(FINE, FULL, prompt, done, end)


@about("REG.COMPLETE", bound=TWELVE)
def no_completed_block_is_left_out(prompt: int, done: int, end: int) -> bool:
    """Every block end that a grant reached is keyed.

    pre: 1 <= prompt and 0 <= done <= end <= 12
    post: _
    """
    lengths = [length for _, length in full_entries(FINE, FULL, prompt, done, end)]
    return all((done < size <= end) == (size in lengths) for size in (4, 8, 12))


@about("REG.PARTIAL", bound=TWELVE)
def partial_key_while_the_block_is_open(prompt: int, done: int, end: int) -> bool:
    """A full group's partial key is given as soon as its boundary is reached, unless the same
    grant completes the block.

    pre: 1 <= prompt and 0 <= done <= end <= 12
    post: _
    """
    tail = prompt - prompt % 2
    inside = [length for _, length in full_entries(FINE, FULL, prompt, done, end) if length % 4]
    due = tail % 4 == 2 and done < tail <= end < tail + 2
    return inside == ([tail] if due else [])


@about("REG.PROMOTED", "REG.COMPLETE", bound=TWELVE, slow=True)
def two_grants_key_what_one_does(prompt: int, done: int, between: int, end: int) -> bool:
    """Two grants end with the keys of one: a partial key given by the first gives way to that of
    the completed block, in the same slot.

    pre: 1 <= prompt and 0 <= done <= between <= end <= 12
    post: _
    """
    once = dict(full_entries(FINE, FULL, prompt, done, end))
    first = full_entries(FINE, FULL, prompt, done, between)
    return {**dict(first), **dict(full_entries(FINE, FULL, prompt, between, end))} == once


@about("REG.EXACT", "REG.PARTIAL", bound=FOUR)
def states_are_keyed_where_they_are(prompt: int, done: int, start: int, end: int) -> Entries:
    """A recurrent key is for the length at which the chunk starts or ends, in its slot, and only
    on the block grid or at the prompt's last hash boundary.

    pre: 1 <= prompt and 0 <= done and 0 <= start < end
    post: all(length in (start, end) and length > done for _slot, length in _)
    post: all(slot * 4 < length <= slot * 4 + 4 for slot, length in _)
    post: all(length % 4 == 0 or length == prompt - prompt % 2 for _slot, length in _)
    """
    return recurrent_entries(FINE, STATE, prompt, done, start, end)


@about("REG.EXACT", bound=FOUR)
def state_at_a_boundary_is_keyed(prompt: int, start: int, end: int) -> bool:
    """A chunk that ends on the grid, or at the prompt's last hash boundary, keys its state.

    pre: 1 <= prompt and 0 <= start < end
    pre: end % 4 == 0 or end == prompt - prompt % 2
    post: _
    """
    slot = state_slot(FINE.groups[STATE], end)
    return (slot, end) in recurrent_entries(FINE, STATE, prompt, start, start, end)


# --- the keys that the judge works out ----------------------------------------------------------

NAME = RequestId("r")
TOKENS = tuple(map(Token, range(5)))
KNOWN = make_prefix(Identity(), TOKENS, 1)
HELD: Tables = (tuple(map(BlockId, (1, 2, 3, 4))),)


def granted(start: int, end: int, delayed: bool) -> Case:
    """A grant of [start, end) to a request of 5 known tokens in blocks of 2."""
    request = Request(KNOWN, 5, computed=start, tables=HELD, registered=start)
    case = Case(State(DRAFTS, requests={NAME: request}), Profile.ACCOUNTING, Ledger())
    register(case, NAME, start, end, delayed)
    return case


@about("REG.DRAFT", "REG.ONLY", bound="5 known tokens, blocks of 2, chunks that end at up to 8")
def no_key_beyond_what_is_known(start: int, end: int) -> bool:
    """At a grant no key is given beyond the chunk's end or the known tokens.

    pre: 0 <= start < end <= 8 and start <= 4
    post: _
    """
    keys = granted(start, end, False).draft.keys
    return all(start < entry.length <= min(end, 5) for entry in keys.values())


@about("REG.DELAYED", bound="5 known tokens, blocks of 2, chunks that end at up to 8")
def delayed_grant_keys_nothing(start: int, end: int) -> bool:
    """A grant with delayed caching keys nothing, and the next one keys all complete blocks.

    pre: 0 <= start < end <= 8 and start <= 4
    post: _
    """
    case = granted(start, end, True)
    nothing = not case.draft.keys
    register(case, NAME, end, end, False)
    lengths = {entry.length for entry in case.draft.keys.values()}
    return nothing and lengths == {n for n in (2, 4) if start < n <= end}


@about("REG.WITHDRAWN", bound="5 known tokens, blocks of 2, chunks that end at up to 8")
def withdrawn_chunk_leaves_no_key(start: int, end: int) -> bool:
    """After a chunk is withdrawn none of its keys remains, in the books or in the index.

    pre: 0 <= start < end <= 8 and start <= 4
    post: _
    """
    case = granted(start, end, False)
    retract(case, NAME, start)
    return not case.draft.keys and not case.draft.index
