"""What a chunk reads and writes, and what follows for the blocks of a step."""

from __future__ import annotations

from dataclasses import replace

from kvspec.spec.digests import make_prefix
from kvspec.spec.state import (
    Entry,
    Forward,
    HandOff,
    LastLookup,
    Pass,
    Request,
    State,
    Work,
    later_writes,
    lowest_writes,
    read_slots,
    touched_blocks,
    written_slots,
)
from kvspec.spec.types import (
    BlockId,
    Config,
    Group,
    GroupId,
    GroupKind,
    Identity,
    RequestId,
    Step,
    Tables,
    Token,
)

CONFIG = Config(99, 2, (Group(GroupKind.FULL, 4), Group(GroupKind.MAMBA_ALIGN, 4)), 99)
PREFIX = make_prefix(Identity(), tuple(Token(n) for n in range(20)), 2)
A = RequestId("a")


def table(*groups: tuple[int, ...]) -> Tables:
    return tuple(tuple(BlockId(n) for n in group) for group in groups)


def forward(start: int, end: int) -> Forward:
    return Forward(A, PREFIX, start, end, table((11, 12, 13, 14), (21, 22, 23, 24)))


def test_a_chunk_writes_its_positions_and_the_state_at_its_end() -> None:
    assert written_slots(CONFIG, forward(3, 9)) == [(0, 0, 3), (0, 1, 4), (0, 2, 8), (1, 2, 0)]
    assert written_slots(CONFIG, forward(4, 8)) == [(0, 1, 4), (1, 1, 0)]
    assert written_slots(CONFIG, forward(5, 6)) == [(0, 1, 5), (1, 1, 0)]


def test_a_chunk_reads_all_attention_and_the_state_at_its_start() -> None:
    assert read_slots(CONFIG, forward(4, 9)) == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert read_slots(CONFIG, forward(5, 8)) == [(0, 0), (0, 1), (1, 1)]
    assert read_slots(CONFIG, forward(0, 4)) == [(0, 0)]


def test_the_lowest_position_that_a_step_writes_in_a_block() -> None:
    copies = ((BlockId(31), BlockId(22)), (BlockId(33), BlockId(34)))
    work = Work(Step(1), copies=copies, forwards=(forward(6, 9), forward(5, 6)))
    assert lowest_writes(CONFIG, work) == {12: 5, 13: 8, 22: 0, 23: 0, 34: 0}


def test_every_block_that_a_step_touches() -> None:
    copies = ((BlockId(31), BlockId(32)),)
    work = Work(Step(1), (BlockId(50),), (BlockId(40),), copies, (forward(5, 9),))
    assert touched_blocks(CONFIG, work) == {31, 32, 40, 11, 12, 13, 22, 23}


def test_what_steps_that_did_not_run_yet_will_write() -> None:
    ran = Work(Step(1), zeroed=(BlockId(41),))
    waits = Work(Step(2), zeroed=(BlockId(42),), forwards=(forward(0, 2),))
    opened = Work(Step(3), zeroed=(BlockId(43),))
    state = State(CONFIG, in_flight=(ran, waits), executed=Step(1))
    assert later_writes(state) == {42, 11, 21}
    assert later_writes(replace(state, open=Pass(opened))) == {42, 11, 21, 43}
    assert later_writes(State(CONFIG)) == set()


def test_a_hit_is_a_place_to_resume_from_when_all_states_are_there() -> None:
    hit = LastLookup(A, (), 8, (None, 8))
    assert not hit.guessed
    assert hit.whole is None
    assert hit.resumable
    assert not replace(hit, states=(None, 4)).resumable
    assert not replace(hit, states=(None, 8, 4)).resumable
    assert not replace(hit, guessed=True).resumable
    assert replace(hit, states=(None,)).resumable


def test_a_request_is_stranded_when_it_holds_blocks_and_has_nowhere_to_resume_from() -> None:
    lost = Request(PREFIX, 20, tables=table((1,), (2,)), resumable=False)
    assert lost.stranded
    assert not replace(lost, resumable=True).stranded
    assert not replace(lost, loading=True).stranded
    assert not replace(lost, tables=()).stranded


def test_a_request_that_waits_again_has_nothing_but_its_tokens() -> None:
    pin = HandOff(GroupId(1), BlockId(2), 4, PREFIX, Step(1))
    held = Request(
        PREFIX, 7, 8, table((1,)), table((1,)), 8, 4, False, True, Step(3), (pin,), True, True
    )
    assert held.waiting() == Request(
        PREFIX, 7, 0, (), (), 0, 0, True, False, Step(3), (), False, False
    )


def test_an_entry_is_found_under_its_group_and_digest() -> None:
    entry = Entry(GroupId(1), PREFIX, 6)
    assert entry.key == (1, PREFIX.digests[3])
    assert not entry.moved


def test_blocks_that_nobody_holds() -> None:
    assert State(CONFIG, refs={BlockId(1): 2, BlockId(5): 1}).num_free == 96
