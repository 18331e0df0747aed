"""CrossHair confirms every condition, and refutes them of rules with one operator changed."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import ModuleType

import pytest

from kvspec.conditions import CONDITIONS, Condition
from kvspec.conditions.confirm import confirm, examine, posts
from kvspec.mutants.load import Edit, load_copy, patched, sources
from kvspec.spec.clauses import CLAUSES

CASES = [
    pytest.param(condition, id=id, marks=[pytest.mark.deep] if condition.slow else [])
    for id, condition in CONDITIONS.items()
]


@pytest.mark.parametrize("condition", CASES)
def test_is_confirmed(condition: Condition) -> None:
    result = confirm(condition)
    assert (result.verdict, result.reason) == ("confirmed", "")


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS)
def test_says_what_it_is_about(condition: Condition) -> None:
    assert set(condition.clauses) <= CLAUSES.keys()
    assert posts(condition.function) > 0
    assert condition.statement.endswith(".")
    assert condition.bound


CHANGES = {
    "arithmetic.pieces_cover": ("types", "-(-amount // size)", "amount // size + 1"),
    "arithmetic.aligned_is_nearest": ("types", "amount - amount % size", "amount + amount % size"),
    "arithmetic.state_lies_in_its_block": ("tables", "(length - 1) //", "length //"),
    "arithmetic.alignment_suits_every_group": (
        "types",
        "g.block_size > self.hash_unit for",
        "g.block_size >= self.hash_unit for",
    ),
    "books.last_holder_frees": ("state", "if count == 1:", "if count <= 2:"),
    "books.new_key_replaces_the_old": (
        "state",
        "        self.unpublish(block)\n        self.put",
        "        self.put",
    ),
    "chunks.ends_legally": ("chunks", "< stop < end]", "< stop <= end + 1]"),
    "chunks.advances_or_waits_for_room": ("chunks", "< stop < end]", "<= stop < end]"),
    "chunks.stands_still_only_for_room": (
        "chunks",
        "aligned <= chunk.start",
        "aligned < chunk.start",
    ),
    "chunks.cacheable_end_leaves_room": ("chunks", "max(end - chunk.block_size, 0)", "end"),
    "chunks.passes_no_stop": ("chunks", "if chunk.start % size:", "if chunk.start % size == 1:"),
    "chunks.fast_rule_is_the_same": (
        "chunks",
        "tail < chunk.num_prompt_tokens",
        "tail <= chunk.num_prompt_tokens",
    ),
    "content.overwriting_spares_the_rest": (
        "content",
        "_clip(run, end, run.end)",
        "_clip(run, end + 1, run.end)",
    ),
    "content.state_is_of_one_length": (
        "content",
        "content.length != length",
        "content.length < length",
    ),
    "digests.one_digest_a_complete_unit": (
        "digests",
        "- hash_unit + 1, hash_unit)",
        ", hash_unit)",
    ),
    "digests.media_counts_in_the_units_it_overlaps": (
        "digests",
        "item.start < end and",
        "item.start <= end and",
    ),
    "digests.salt_and_adapter_are_told_apart": (
        "digests",
        'kind + struct.pack("<Q", len(raw)) + raw',
        "kind + raw",
    ),
    "digests.tags_differ_where_tokens_do": (
        "digests",
        "self.tag(length) == other.tag(length)",
        "units > 0",
    ),
    "grants.first_grant_takes_what_it_counts": (
        "tables",
        "sum(slot.block is None for",
        "sum(slot.block is None or slot == NULL for",
    ),
    "grants.first_chunk_writes_no_hit_block": ("tables", "if span.local % size:", "if False:"),
    "grants.tail_moves_where_it_is_overwritten": (
        "tables",
        "if slot != state_slot(group, span.end) or",
        "if slot == state_slot(group, span.end) or",
    ),
    "grants.only_older_states_go_back": ("tables", "range(min(needed,", "range(min(needed + 1,"),
    "grants.lookahead_stays_within_the_model": (
        "tables",
        "min(span.end + span.lookahead, config.max_model_len)",
        "min(span.end + span.lookahead, config.max_model_len + 1)",
    ),
    "grants.writes_are_the_chunk": (
        "state",
        "range(forward.start // size, ceil_div",
        "range(forward.start // size + 1, ceil_div",
    ),
    "hits.leaves_a_token": ("lookup", "max(num_tokens - 1, 0)", "max(num_tokens, 0)"),
    "hits.run_is_keyed_throughout": ("lookup", "end + size <= limit", "end + size < limit"),
    "hits.served_by_every_group": (
        "lookup",
        "min(run + size - 1, limit)",
        "min(run + size - 2, limit)",
    ),
    "hits.eagle_gives_up_one_unit": (
        "types",
        "return self.hash_unit if self.fine else group.block_size",
        "return group.block_size",
    ),
    "hits.recurrent_groups_agree": ("lookup", "if length == agreed:", "if length <= agreed:"),
    "hits.boundary_is_beyond_the_hit": (
        "lookup",
        "longest if longest > num_tokens",
        "longest if longest >= num_tokens",
    ),
    "hits.connector_is_told_no_less": ("lookup", "reach < local for", "reach <= local for"),
    "hits.full_group_is_cut_to_its_blocks": (
        "lookup",
        "slots < wanted and not",
        "slots < wanted and",
    ),
    "keys.full_keys_are_news": ("registration", "done < tail <= end and", "done < tail and"),
    "keys.states_are_keyed_where_they_are": (
        "registration",
        "and done < start:",
        "and done <= start:",
    ),
    "keys.no_key_beyond_what_is_known": (
        "registration",
        "known = min(end, len(request.prefix))",
        "known = end",
    ),
    "keys.withdrawn_chunk_leaves_no_key": (
        "registration",
        "entry.length > computed",
        "entry.length > computed + 1",
    ),
}
"""By condition that must fail: the module of the rules, its text, and what that is changed to."""


@pytest.mark.parametrize(
    "id",
    [pytest.param(id, marks=[pytest.mark.deep] if CONDITIONS[id].slow else []) for id in CHANGES],
)
def test_a_changed_rule_is_refuted(id: str) -> None:
    changed = with_rules(Edit(*CHANGES[id])).CONDITIONS[id]
    states = {answer.state for answer in examine(changed.function)}
    assert states & {"POST_FAIL", "EXEC_ERR"}, states


def test_conditions_of_every_noun_are_refuted() -> None:
    """Those of the kernels are in tests/kernels/test_contracts.py."""
    nouns = {id.partition(".")[0] for id in CONDITIONS}
    assert {id.partition(".")[0] for id in CHANGES} == nouns - {"kernels"}


def test_unchanged_rules_pass_as_a_copy_too() -> None:
    copy = with_rules().CONDITIONS["hits.run_is_keyed_throughout"]
    assert confirm(copy).verdict == "confirmed"


def with_rules(*edits: Edit) -> ModuleType:
    """The package of conditions, about a copy of the rules that is changed."""
    load_copy("changed_spec", patched("kvspec.spec", edits, "of the rules"))
    texts = {
        name: text.replace("kvspec.spec", "changed_spec")
        for name, text in sources("kvspec.conditions").items()
    }
    for name, text in texts.items():  # CrossHair reads `pre:` and `post:` from the source
        file = f"<changed_conditions.{name}>"
        linecache.cache[file] = len(text), None, text.splitlines(True), file
    return load_copy("changed_conditions", texts)


def told(function: Callable[[int], int]) -> tuple[str, str]:
    """The verdict on a function, and the first word of why."""
    result = confirm(Condition("test.function", function, ("HIT.LIMIT",), "none"))
    return result.verdict, result.reason.partition(":")[0]


def test_what_nothing_admits_is_not_confirmed() -> None:
    assert told(unreachable) == ("undecided", "PRE_UNSAT")
    assert told(false) == ("refuted", "POST_FAIL")
    assert told(unsaid) == ("undecided", "CrossHair answered 0 of 0 times")
    assert told(raises) == ("refuted", "EXEC_ERR")


def test_what_takes_too_long_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvspec.conditions.confirm.SECONDS", 2.0)
    assert told(endless) == ("undecided", "CANNOT_CONFIRM")


def unreachable(number: int) -> int:
    """Nothing is both.

    pre: number > 0 and number < 0
    post: _ == number
    """
    return number


def false(number: int) -> int:
    """Not so for 7.

    post: _ != 7
    """
    return number


def unsaid(number: int) -> int:
    """Nothing is said of it."""
    return number


def raises(number: int) -> int:
    """Fails for 0.

    post: True
    """
    return 1 // number


def endless(number: int) -> int:
    """As many paths as numbers.

    pre: number >= 0
    post: _ >= 0
    """
    found = 0
    while found < number:
        found += 1
    return found
