"""Why a hit was as long as it was: each reason in its smallest form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvspec.codec import write_trace
from kvspec.driver import Driver
from kvspec.errors import BadInput
from kvspec.explain import Explained, explain
from kvspec.failure import find_subject
from kvspec.scenarios.play import P6, cache, full, mamba
from kvspec.session import Session
from kvspec.spec import events as ev
from kvspec.spec.types import Adapter, Config, Connector, Identity, RequestId
from kvspec.targets import find_factory
from tests.cli.run import run

B = RequestId("b")


def start(config: Config) -> Driver:
    return Driver(Session("reference", find_factory("reference"), config))


def explained(driver: Driver) -> Explained:
    """The last lookup of b, after one more if there is none."""
    if B not in driver.state.requests:
        raise AssertionError
    driver.lookup("b")
    events = (driver.session.config, *driver.session.events)
    return explain("trace", events, "b", find_subject("optimized"))[-1]


def served(config: Config, tokens: tuple[int, ...] = P6, *hows: str) -> Driver:
    """A cache in which `a` was computed and is done."""
    driver = start(config)
    driver.submit("a", tokens)
    driver.compute("a", *hows)
    driver.finish("a")
    return driver


def test_the_last_token_is_always_computed() -> None:
    driver = served(cache(full(2)))
    driver.submit("b", P6)
    one = explained(driver)
    assert one.num_tokens == 4
    assert one.why == "it is as long as may be: the last of 6 tokens is computed, to get logits"
    assert {block.filled_by for block in one.reused} == {"a"}


def test_below_the_unit() -> None:
    driver = served(cache(full(4), hash_unit=4))
    driver.submit("b", (0, 0, 1))
    assert explained(driver).why == "3 tokens leave 2 to reuse, below the scheduler block of 4"


def test_never_keyed() -> None:
    driver = served(cache(full(2)))
    driver.submit("b", (0, 0, 5, 5, 5))
    assert explained(driver).why == "group 0 (full) ends at 2: never keyed at 4 tokens"


def test_another_identity() -> None:
    driver = served(cache(full(2)))
    driver.submit("b", (*P6, 3), Identity(salt="s", adapter=Adapter("l")))
    assert explained(driver).why == (
        "group 0 (full) ends at 0: never keyed at 2 tokens; 'a' has the same tokens but another "
        "salt and adapter"
    )


def test_evicted_when_its_block_was_taken() -> None:
    driver = served(cache(full(2), num_blocks=4))
    driver.submit("q", (9, 9, 9))
    driver.compute("q")
    driver.submit("b", (*P6, 3))
    one = explained(driver)
    taken = driver.session.events.index(ev.Allocate(RequestId("q"), 3)) + 1
    assert one.num_tokens == 2
    assert one.why == (
        "group 0 (full) ends at 2: the key at 4 tokens, given to block 2 by 'a' at event 4, was "
        f"lost at event {taken}: the block was taken for 'q'"
    )


@pytest.mark.parametrize(
    ("event", "why"), [(ev.Reset(), "the cache was reset"), (None, "evicted on demand")]
)
def test_dropped_on_demand(event: ev.Event | None, why: str) -> None:
    driver = served(cache(full(2)))
    driver.send(event or ev.Evict(tuple(driver.state.keys)))
    driver.submit("b", (*P6, 3))
    assert explained(driver).why.endswith(why)


def test_the_group_that_fell_short() -> None:
    driver = served(cache(full(2), mamba(4)), (*P6, 3, 3, 3), "rest")
    driver.submit("b", (*P6, 3, 3, 4, 4))
    one = explained(driver)
    assert [group.reach for group in one.groups] == [8, 0]
    assert one.why == "group 1 (mamba_align) ends at 0: never keyed at 2 tokens"


def test_groups_that_reach_different_lengths() -> None:
    driver = served(cache(full(2), mamba(4), num_blocks=9))
    driver.submit("q", tuple(range(20, 29)))
    driver.compute("q")
    driver.submit("b", (*P6, 3, 3))
    one = explained(driver)
    assert (one.num_tokens, [group.reach for group in one.groups]) == (0, [2, 6])
    assert one.why.startswith("group 0 (full) ends at 2: the key at 4 tokens, given to block 2")
    assert one.why.endswith("; and group 1 has no state there: never keyed at 2 tokens")


def test_eagle_gives_up_a_unit() -> None:
    driver = served(cache(full(4, eagle=True), connector=Connector.UNIFORM), tuple(range(9)))
    driver.submit("b", tuple(range(12)))
    one = explained(driver)
    assert one.num_tokens == 4
    assert "eagle gives up the last unit of what was found, 8 tokens" in one.groups[0].why


def test_a_withdrawn_chunk_and_a_promoted_tail() -> None:
    driver = start(cache(full(4), mamba(4)))
    driver.submit("a", P6)
    driver.compute("a")
    driver.append("a", 3, 3)
    driver.begin()
    driver.allocate("a", 2)
    driver.send(ev.Withdraw(RequestId("a")))
    driver.step()
    driver.submit("b", (*P6, 3, 3, 4))
    one = explained(driver)
    assert "the chunk of 'a' that was to write it was withdrawn" in one.groups[0].why


def test_deferred_then_granted_through_the_moved_block() -> None:
    driver = start(cache(full(2), mamba(4)))
    driver.submit("a", P6)
    driver.compute("a")
    driver.append("a", 7)
    driver.submit("b", (*P6, 4, 4))
    driver.begin()
    driver.go_on("a")
    driver.admit("b")
    driver.step()
    driver.begin()
    driver.admit("b")
    driver.step()
    events = (driver.session.config, *driver.session.events)
    first, second = explain("trace", events, "b", find_subject("reference"))
    assert first.outcome.startswith("deferred")
    assert second.outcome == "granted"
    assert [block.filled_by for block in second.reused] == ["a"] * 4


def test_the_command(tmp_path: Path) -> None:
    driver = served(cache(full(2)))
    driver.submit("b", (0, 0, 5, 5, 5))
    driver.lookup("b")
    trace, report = tmp_path / "t.jsonl", tmp_path / "r.json"
    write_trace(trace, (driver.session.config, *driver.session.events))
    ran = run("explain", trace, "--request", "b", "--json", report)
    assert ran.status == 0, ran
    assert ran.verdict == ("b hit 2 of 5 tokens: group 0 (full) ends at 2: never keyed at 4 tokens")
    data = json.loads(report.read_text())
    assert data["lookups"][0]["groups"][0]["reach"] == 2
    ran = run("explain", trace, "--request", "c")
    assert ran.is_refused()
    assert "no request 'c' is submitted in it" in ran.stderr
    ran = run("explain", trace, "--request", "b", "--target", "kvspec.targets:nope")
    assert ran.is_refused()


def test_a_request_that_is_not_there() -> None:
    with pytest.raises(BadInput, match="no request 'z'"):
        explain("t", (cache(full(2)),), "z", find_subject("reference"))
