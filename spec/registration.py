"""Which blocks a grant keys, and which keys go when a chunk never runs (design 4.3)."""

from __future__ import annotations

from . import clauses as c
from . import marks as m
from .case import Case
from .clauses import Clause
from .state import Entry
from .tables import state_slot
from .types import BlockId, Config, GroupId, RequestId, Table, align_down


def partial_boundary(config: Config, num_prompt_tokens: int) -> int:
    """The prompt's last hash boundary: where a partial entry may stand; 0 outside fine mode."""
    return align_down(num_prompt_tokens, config.hash_unit) if config.fine else 0


def full_entries(
    config: Config, group_id: GroupId, num_prompt_tokens: int, done: int, end: int
) -> list[tuple[int, int]]:
    """(slot, length) of the keys that a full group gains when registration goes on to `end`."""
    size = config.groups[group_id].block_size
    found = [(slot, (slot + 1) * size) for slot in range(done // size, end // size)]
    tail = partial_boundary(config, num_prompt_tokens)
    if tail % size and done < tail <= end and tail // size == end // size:
        found.append((tail // size, tail))
    return found


def recurrent_entries(
    config: Config, group_id: GroupId, num_prompt_tokens: int, done: int, start: int, end: int
) -> list[tuple[int, int]]:
    """(slot, length) of the keys that a recurrent group gains by a chunk [start, end).

    There are states at its start and at its end, and nowhere between.
    """
    group, found = config.groups[group_id], []
    if start % group.block_size == 0 and done < start:
        found.append((state_slot(group, start), start))
    on_grid = end % group.block_size == 0 or end == partial_boundary(config, num_prompt_tokens)
    if on_grid and max(start, done) < end:
        found.append((state_slot(group, end), end))
    return found


def register(case: Case, name: RequestId, start: int, end: int, delayed: bool) -> None:
    """Key what the tokens up to `end` complete; drafts are never looked at."""
    request, config = case.draft.request(name), case.config
    if not config.caching:
        return
    known = min(end, len(request.prefix))
    for g, group in enumerate(config.groups):
        group_id, prompt, done = GroupId(g), request.num_prompt_tokens, request.registered
        if group.recurrent:
            found = recurrent_entries(config, group_id, prompt, done, start, known)
        else:
            found = full_entries(config, group_id, prompt, done, known)
        table = request.tables[g]
        if delayed or request.loading:
            for slot, _ in found:
                case.owe(c.REG_DELAYED, "key", table[slot])
            continue
        for slot, length in found:
            _publish(case, table[slot], Entry(group_id, request.prefix, length))
        _owe_the_rest(case, group_id, table, start, end, known)
    if not (delayed or request.loading):
        case.draft.update(name, registered=max(known, request.registered))


def _publish(case: Case, block: BlockId, entry: Entry) -> None:
    clause = _clause_for(case, block, entry)
    case.draft.publish(block, entry)
    case.owe(clause, "key", block)


def _clause_for(case: Case, block: BlockId, entry: Entry) -> Clause:
    group = case.config.groups[entry.group]
    if case.draft.entry(block) is not None:
        case.mark(m.PROMOTION)
        return c.REG_PROMOTED
    if entry.length % group.block_size:
        case.mark(m.PARTIAL_ENTRY)
        return c.REG_PARTIAL
    return c.REG_EXACT if group.recurrent else c.REG_COMPLETE


def _owe_the_rest(
    case: Case, group_id: GroupId, table: Table, start: int, end: int, known: int
) -> None:
    """What must have no key: a state off the grid, a block completed by drafts."""
    group = case.config.groups[group_id]
    if group.recurrent and end > start:
        block = table[state_slot(group, end)]
        if case.draft.entry(block) is None:
            case.owe(c.REG_EXACT, "key", block)
    if not group.recurrent:
        for slot in range(known // group.block_size, end // group.block_size):
            case.owe(c.REG_DRAFT, "key", table[slot])


def retract(case: Case, name: RequestId, computed: int) -> None:
    """Drop the keys of a chunk that will never run: those beyond what was computed before it."""
    for table in case.draft.request(name).tables:
        for block in table:
            entry = case.draft.entry(block)
            if entry is not None and entry.length > computed:
                case.draft.unpublish(block)
                case.owe(c.REG_WITHDRAWN, "key", block)
