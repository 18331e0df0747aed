"""What tells states apart leaves out nothing that a manager holds."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from types import ModuleType

import pytest

from kvspec.optimized import fences, index, lookup, offers, requests, step_lists
from kvspec.optimized import manager as fast
from kvspec.optimized import pool as fast_pool
from kvspec.prove import books, canon
from kvspec.reference import lookup as plain_lookup
from kvspec.reference import manager as plain
from kvspec.reference import plan
from kvspec.reference import pool as plain_pool
from kvspec.spec import content, state

UNREAD = {
    # The same in all states of a world.
    "config", "layout", "hash_unit", "identity", "plain", "connected", "deferral", "granter",
    # Parts that are read through their own attributes.
    "pool", "free", "index", "lists", "fences", "offers", "chain", "name",
    # `Request.table()` is read instead: it answers from these.
    "_frozen", "_stale", "_whole",
    # Said by the lookup itself; a grant and a cut do not read them.
    "boundary", "diverged", "shared_prefix_boundary",
    # Known from the free list and the links, which no block outside the list has.
    "count",
    # What the judge uses up before the next event, or works out again from what is compared.
    "last_lookup", "due", "freed", "free_list", "names", "digests", "shown", "settled", "index_of",
}  # fmt: skip
"""Attributes that need not be read, by why."""


def attributes(kind: type) -> set[str]:
    """The names of what an instance holds."""
    if is_dataclass(kind):
        return {field.name for field in fields(kind)}
    slots = getattr(kind, "__slots__", None)
    if slots:
        return set(slots)
    source = inspect.getsource(kind)
    return set(re.findall(r"self\.(\w+)(?:, self\.(?:\w+))*(?:: [^=\n]+)? = ", source)) | set(
        re.findall(r"^\s+self\.(\w+): ", source, flags=re.MULTILINE)
    )


def is_read(name: str, module: ModuleType) -> bool:
    """Whether the module looks at an attribute of this name."""
    return re.search(rf"\.{name}\b", inspect.getsource(module)) is not None


@pytest.mark.parametrize(
    "kind",
    [
        plain.Manager, plain_pool.Pool, plan.Request, plain_lookup.Result,
        fast.Manager, fast.Detached, fast_pool.Pool, index.Index, fences.Fences, offers.Offers,
        requests.Request, step_lists.StepLists, lookup.Found,
    ],
    ids=lambda kind: f"{kind.__module__.removeprefix('kvspec.')}.{kind.__name__}",
)  # fmt: skip
def test_every_attribute_of_a_manager_is_read(kind: type) -> None:
    held = attributes(kind)
    assert held
    assert {name for name in held - UNREAD if not is_read(name, books)} == set()


@pytest.mark.parametrize(
    "kind",
    [
        state.State, state.Request, state.Entry, state.HandOff, state.DetachedList, state.Pass,
        state.Work, state.Forward, state.LastLookup, content.Rows, content.Run,
        content.RecurrentState,
    ],
    ids=lambda kind: kind.__name__,
)  # fmt: skip
def test_every_attribute_of_the_judges_state_is_read(kind: type) -> None:
    held = attributes(kind)
    assert {name for name in held - UNREAD if not is_read(name, canon)} == set()


def test_an_attribute_that_nobody_reads_is_noticed() -> None:
    class Forgetful:
        __slots__ = ("memory_of_past_lives",)

    assert not is_read(next(iter(attributes(Forgetful))), books)
