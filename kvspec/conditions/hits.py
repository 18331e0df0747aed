"""Lookup (design 4.2) and truncation (4.9): what a hit may promise, whatever is keyed."""

from __future__ import annotations

from kvspec.spec.lookup import (
    Keyed,
    connector_hit,
    full_reach,
    full_run,
    hit_limit,
    joint_hit,
    longest_reach,
    own_reach,
    partial_tail,
    recurrent_reach,
    serving_lengths,
    shared_prefix_boundary,
    truncated_slots,
)
from kvspec.spec.types import Config, Group, GroupId, GroupKind

from .model import about

Keys = tuple[bool, bool, bool, bool]
"""Whether a group has a block keyed at 1, 2, 3 and 4 hash units."""

FULL, STATE = GroupId(0), GroupId(1)
FINE = Config(9, 1, (Group(GroupKind.FULL, 2), Group(GroupKind.MAMBA_ALIGN, 2)), 99)
EAGLE = Config(9, 1, (Group(GroupKind.FULL, 2, eagle=True), Group(GroupKind.MAMBA_ALIGN, 2)), 99)
COARSE = Config(9, 1, (Group(GroupKind.FULL, 2), Group(GroupKind.MAMBA_ALIGN, 1)), 99)
STATES = GroupKind.MAMBA_ALIGN
THREE = Config(9, 1, (Group(GroupKind.FULL, 2), Group(STATES, 2), Group(STATES, 3)), 99)

SHORT = "prefixes of up to 4 tokens, keyed anywhere, hash unit 1"
FINE_BOUND = f"{SHORT}; full and recurrent blocks of 2 tokens"
EAGLE_BOUND = f"{SHORT}; full blocks of 2 with eagle, recurrent blocks of 2"
THREE_BOUND = f"{SHORT}; full blocks of 2, recurrent groups with blocks of 2 and of 3"


def keyed_at(*groups: Keys) -> Keyed:
    """What is keyed, as lookup asks for it."""
    return lambda group_id, length: groups[group_id][length - 1]


def short(limit: int) -> bool:
    """Whether a limit lies within `SHORT`."""
    return limit in (0, 1, 2, 3, 4)


@about("HIT.LIMIT")
def leaves_a_token(num_tokens: int) -> int:
    """A hit may reuse all tokens but one, which is computed.

    pre: num_tokens >= 1
    post: _ == num_tokens - 1
    """
    return hit_limit(FINE, num_tokens)


@about("HIT.LENGTH", bound=FINE_BOUND)
def run_is_keyed_throughout(full: Keys, limit: int) -> int:
    """Each block of the run is keyed, and the next one is not or does not fit.

    pre: short(limit)
    post: _ in (0, 2, 4) and _ <= limit
    post: (_ < 2 or full[1]) and (_ < 4 or full[3])
    post: _ + 2 > limit or not full[_ + 1]
    """
    return full_run(FINE, FULL, keyed_at(full), limit)


@about("HIT.LENGTH", bound=FINE_BOUND)
def tail_is_keyed(full: Keys, limit: int) -> int:
    """What is found behind a run lies strictly inside the next block and is keyed.

    pre: limit in (2, 3, 4)
    post: 2 <= _ <= min(limit, 3)
    post: _ == 2 or full[_ - 1]
    post: limit < 3 or not full[2] or _ == 3
    """
    return partial_tail(FINE, FULL, keyed_at(full), 2, limit)


@about("HIT.LENGTH", bound=EAGLE_BOUND)
def eagle_gives_up_one_unit(full: Keys, limit: int) -> bool:
    """An eagle group reaches one hash unit less than it would without, and never below 0.

    pre: short(limit)
    post: _
    """
    keyed = keyed_at(full)
    plain = full_reach(FINE, FULL, keyed, limit)
    return full_reach(EAGLE, FULL, keyed, limit) == max(plain - 1, 0)


@about("HIT.LENGTH", bound=FINE_BOUND)
def state_reach_is_the_longest_keyed(state: Keys, limit: int) -> int:
    """A recurrent group reaches exactly a keyed length, and no longer one is keyed.

    pre: short(limit)
    post: 0 <= _ <= limit and (_ == 0 or state[_ - 1])
    post: not any(state[_:limit])
    """
    return recurrent_reach(FINE, STATE, keyed_at(state, state), limit)


@about("HIT.LENGTH", bound=FINE_BOUND)
def never_beyond_a_group(full: Keys, state: Keys, limit: int) -> bool:
    """A joint hit is within the limit and within the reach of each group alone.

    pre: short(limit)
    post: _
    """
    keyed = keyed_at(full, state)
    hit = joint_hit(FINE, keyed, limit)
    reaches = [own_reach(FINE, group, keyed, limit) for group in (FULL, STATE)]
    return 0 <= hit <= limit and all(hit <= reach for reach in reaches)


@about("HIT.LENGTH", "DATA.STATE", bound=FINE_BOUND)
def served_by_every_group(full: Keys, state: Keys, limit: int) -> int:
    """A joint hit has whole keyed blocks, a keyed boundary where it ends inside one, and a state
    at exactly its end; nothing longer has.

    pre: short(limit)
    post: _ == max(n for n in (0, 1, 2, 3, 4) if n <= limit and serves(full, state, n, limit))
    """
    return joint_hit(FINE, keyed_at(full, state), limit)


def serves(full: Keys, state: Keys, length: int, limit: int) -> bool:
    """Whether both groups of `FINE` serve a length.

    A full block serves every length up to that at which it is keyed, which is within the limit.
    """
    if length == 0:
        return True
    end = length + length % 2
    whole = length < 3 or full[1]
    return whole and any(full[length - 1 : min(end, limit)]) and state[length - 1]


@about("HIT.ALIGNED", bound=f"{SHORT}; full blocks of 2 tokens, recurrent blocks of 1")
def ends_on_the_scheduler_block(full: Keys, state: Keys, limit: int) -> int:
    """Outside fine mode a joint hit is a multiple of every group's block.

    pre: short(limit)
    post: _ % 2 == 0 and 0 <= _ <= limit
    """
    return joint_hit(COARSE, keyed_at(full, state), limit)


@about("HIT.LENGTH", bound=THREE_BOUND)
def recurrent_groups_agree(full: Keys, one: Keys, other: Keys, limit: int) -> int:
    """With two recurrent groups a joint hit ends where both have a state.

    pre: short(limit)
    post: _ == 0 or (one[_ - 1] and other[_ - 1])
    """
    return joint_hit(THREE, keyed_at(full, one, other), limit)


@about("HIT.BOUNDARY", bound=FINE_BOUND, slow=True)
def boundary_is_beyond_the_hit(full: Keys, state: Keys, limit: int) -> bool:
    """A shared-prefix boundary is what some group reaches beyond the joint hit, else 0.

    pre: short(limit)
    post: _
    """
    keyed = keyed_at(full, state)
    hit, longest = joint_hit(FINE, keyed, limit), longest_reach(FINE, keyed, limit)
    boundary = shared_prefix_boundary(FINE, keyed, limit, hit)
    return boundary == longest > hit if boundary else longest == hit


@about("HIT.CONNECTOR", bound=FINE_BOUND, slow=True)
def connector_is_told_no_less(full: Keys, state: Keys, limit: int) -> bool:
    """A connector is told at least the joint hit, and of divergence exactly where it is told more
    than the state serves.

    pre: short(limit)
    post: _
    """
    keyed = keyed_at(full, state)
    local, diverged = connector_hit(FINE, keyed, limit)
    return joint_hit(FINE, keyed, limit) <= local <= limit and diverged == (
        local > 0 and own_reach(FINE, STATE, keyed, limit) < local
    )


@about("HIT.FOUND", bound="full blocks of 2 tokens, up to 4 slots, hash unit 1")
def block_serves_what_it_covers(index: int, hit: int, known: int) -> bool:
    """A full block serves its slot where its key covers the hit's part of the block, names known
    tokens, and does not reach into the next block.

    pre: index in (0, 1, 2, 3)
    pre: index * 2 < hit <= known <= 8
    post: _
    """
    lengths = serving_lengths(FINE, FULL, index, hit, known)
    end = (index + 1) * 2
    return len(lengths) > 0 and all(min(hit, end) <= n <= min(end, known) for n in lengths)


@about("HIT.FOUND")
def state_serves_its_own_length(index: int, hit: int, known: int) -> bool:
    """A recurrent block serves the length of its state and no other.

    pre: index >= 0 and 0 < hit <= known
    post: _
    """
    lengths = serving_lengths(FINE, STATE, index, hit, known)
    return len(lengths) == 1 and hit in lengths


@about("TRUNC.VIEW", "TRUNC.ERROR", bound="blocks of 2 tokens")
def full_group_is_cut_to_its_blocks(slots: int, num_tokens: int) -> int | None:
    """A full group cut to a length keeps the blocks that cover it exactly, or it is an error.

    pre: slots >= 0 and num_tokens >= 0
    post: _ is None or (_ * 2 == num_tokens and _ <= slots)
    post: (_ is None) == (num_tokens % 2 != 0 or slots * 2 < num_tokens)
    """
    return truncated_slots(FINE, FULL, slots, num_tokens)


@about("TRUNC.VIEW", "TRUNC.ERROR", bound="blocks of 3 tokens")
def state_group_may_fall_short(slots: int, num_tokens: int) -> int | None:
    """A recurrent group is never padded; only cutting inside a block is an error.

    pre: slots >= 0 and num_tokens >= 0
    post: _ is None or _ == min(slots, num_tokens // 3)
    post: (_ is None) == (num_tokens % 3 != 0)
    """
    return truncated_slots(THREE, GroupId(2), slots, num_tokens)


@about("TRUNC.VIEW", bound="blocks of 2 tokens, 3 slots, cut to up to 6 tokens and then to fewer")
def cutting_twice_is_cutting_once(first: int, second: int) -> bool:
    """A cut of a cut is the cut to the shorter length.

    pre: 0 <= second <= first <= 6 and first % 2 == 0 and second % 2 == 0
    post: _
    """
    once = truncated_slots(FINE, FULL, 3, first)
    return once is not None and (
        truncated_slots(FINE, FULL, once, second) == truncated_slots(FINE, FULL, 3, second)
    )
