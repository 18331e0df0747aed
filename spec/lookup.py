"""How long a hit may be (design 4.2). Lengths only: which copy of a block serves is the target's.

`Keyed` answers, for one request's own prefix: does this group have a block keyed at this length?
"""

from __future__ import annotations

from collections.abc import Callable

from .types import Config, GroupId, align_down

Keyed = Callable[[GroupId, int], bool]


def hit_limit(config: Config, num_tokens: int) -> int:
    """The most tokens that a request may reuse: the last one is computed, to get logits."""
    return max(num_tokens - 1, 0) if config.caching else 0


def full_run(config: Config, group_id: GroupId, keyed: Keyed, limit: int) -> int:
    """The end of the longest run of keyed full blocks from the start."""
    size = config.groups[group_id].block_size
    end = 0
    while end + size <= limit and keyed(group_id, end + size):
        end += size
    return end


def partial_tail(config: Config, group_id: GroupId, keyed: Keyed, run: int, limit: int) -> int:
    """The longest keyed boundary strictly inside the block that follows the run, or the run."""
    unit, size = config.hash_unit, config.groups[group_id].block_size
    for length in range(align_down(min(run + size - 1, limit), unit), run, -unit):
        if keyed(group_id, length):
            return length
    return run


def full_reach(config: Config, group_id: GroupId, keyed: Keyed, limit: int) -> int:
    """How far a full-attention group reaches, looked up on its own.

    What it covers is closed downwards: it also serves every shorter length.
    """
    group = config.groups[group_id]
    reach = full_run(config, group_id, keyed, limit)
    if config.fine:
        reach = partial_tail(config, group_id, keyed, reach, limit)
    if group.eagle:
        reach = max(reach - config.eagle_unit(group), 0)
    return align_down(reach, config.alignment)


def recurrent_reach(config: Config, group_id: GroupId, keyed: Keyed, limit: int) -> int:
    """The longest length within the limit whose state a recurrent group has: exactly there."""
    step = config.alignment
    for length in range(align_down(limit, step), 0, -step):
        if keyed(group_id, length):
            return length
    return 0


def own_reach(config: Config, group_id: GroupId, keyed: Keyed, limit: int) -> int:
    """How far one group reaches, looked up on its own."""
    find = recurrent_reach if config.groups[group_id].recurrent else full_reach
    return find(config, group_id, keyed, limit)


def full_bound(config: Config, keyed: Keyed, limit: int) -> int:
    """How far full attention reaches: the shortest of its groups."""
    full = [GroupId(g) for g in config.ids() if not config.groups[g].recurrent]
    return min(full_reach(config, g, keyed, limit) for g in full)


def joint_hit(config: Config, keyed: Keyed, limit: int) -> int:
    """The longest length that every group can serve.

    Attention bounds it once, since what attention covers is closed downwards. Each recurrent group
    then needs a state at exactly the length agreed on, so they shorten it until all agree.
    """
    agreed = full_bound(config, keyed, limit)
    recurrent = [GroupId(g) for g in config.ids() if config.groups[g].recurrent]
    while True:
        length = agreed
        for group_id in recurrent:
            length = recurrent_reach(config, group_id, keyed, length)
        if length == agreed:
            return length
        agreed = length


def longest_reach(config: Config, keyed: Keyed, limit: int) -> int:
    """The longest length that any single group reaches."""
    return max(own_reach(config, GroupId(g), keyed, limit) for g in config.ids())


def shared_prefix_boundary(config: Config, keyed: Keyed, limit: int, num_tokens: int) -> int:
    """Where some group saw this prefix shared beyond the hit, else 0: a good place to stop."""
    longest = longest_reach(config, keyed, limit)
    return longest if longest > num_tokens else 0


def connector_hit(config: Config, keyed: Keyed, limit: int) -> tuple[int, bool]:
    """The local length that a diverging connector is told, and whether some group is short of it.

    A group that reaches further than attention makes the joint hit the answer.
    """
    local = full_bound(config, keyed, limit)
    reaches = recurrent_reaches(config, keyed, limit)
    if any(reach > local for reach in reaches.values()):
        return joint_hit(config, keyed, limit), False
    return local, any(reach < local for reach in reaches.values())


def recurrent_reaches(config: Config, keyed: Keyed, limit: int) -> dict[GroupId, int]:
    """Each recurrent group's own reach."""
    recurrent = [GroupId(g) for g in config.ids() if config.groups[g].recurrent]
    return {g: recurrent_reach(config, g, keyed, limit) for g in recurrent}


def serving_lengths(config: Config, group_id: GroupId, index: int, hit: int, known: int) -> range:
    """The key lengths at which a block may serve slot `index` of a hit: `known` tokens are known.

    A state serves only its own length. A full block serves every length up to that of its key, so
    the last slot of a hit may come from a block that is keyed further on.
    """
    group = config.groups[group_id]
    if group.recurrent:
        return range(hit, hit + 1)
    end = (index + 1) * group.block_size
    return range(min(hit, end), min(end, known) + 1, config.hash_unit)


def truncated_slots(config: Config, group_id: GroupId, slots: int, num_tokens: int) -> int | None:
    """How many of `slots` remain when a hit is cut to `num_tokens`; None where that is an error."""
    group = config.groups[group_id]
    wanted, rest = divmod(num_tokens, group.block_size)
    if rest or (slots < wanted and not group.recurrent):
        return None
    return min(slots, wanted)
