"""No input from outside gives a traceback, a hang, or an error that is not one printable line."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvspec.errors import BadInput

from .change import changed
from .entries import ENTRIES, Entry, Unseemly, seemly

each = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)

FOUND = {
    "a field that no terminal shows": (
        "vectors",
        b'"field":"num_tokens"',
        b'"field":"\\u0000"',
    ),
}
"""By what was wrong with it: an entry, and what in its seeds became what."""


@each
def test_what_is_right_is_taken(entry: Entry) -> None:
    assert all(entry.feed(seed) for seed in entry.seeds())


@each
def test_what_is_changed_is_taken_or_refused_in_one_line(entry: Entry) -> None:
    seeds = entry.seeds()

    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    @given(st.integers(0, len(seeds) - 1), st.integers(0, 2**32))
    def feed(which: int, seed: int) -> None:
        entry.feed(changed(seeds[which], Random(seed)))

    feed()


@pytest.mark.parametrize("what", FOUND)
def test_what_was_once_found_is_refused(what: str) -> None:
    name, before, after = FOUND[what]
    changes = [s.replace(before, after) for s in ENTRIES[name].seeds() if before in s]
    assert changes
    assert not any(map(ENTRIES[name].feed, changes))


def test_an_error_of_several_lines_is_told_in_one() -> None:
    error = BadInput("no\nsuch \x1b[1mfile")
    seemly(error)
    assert str(error) == "no\\nsuch \\x1b[1mfile"


@pytest.mark.parametrize("text", ["", "x" * 100_000])
def test_an_error_without_words_or_without_end_is_unseemly(text: str) -> None:
    with pytest.raises(Unseemly):
        seemly(BadInput(text))
