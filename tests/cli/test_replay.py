"""`kvspec replay`: workloads and recorded traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvspec import targets
from kvspec.codec import trace_text
from kvspec.spec import events as ev
from kvspec.spec.types import BlockId, Config, Group, GroupKind, RequestId, Token

from .broken_targets import NAME
from .run import run

CANARY = "kvspec.targets:canary"
A, B = RequestId("a"), RequestId("b")
CONFIG = Config(8, 1, (Group(GroupKind.FULL, 2), Group(GroupKind.MAMBA_ALIGN, 2)), 8)
STEP = (ev.TakeZeroing(), ev.TakeCopies(), ev.EndStep(), ev.Execute(), ev.Process())


def submit(name: RequestId, *tokens: int) -> ev.Submit:
    return ev.Submit(name, tuple(map(Token, tokens)))


REUSE = (
    CONFIG,
    submit(A, 1, 2, 3, 4),
    ev.BeginStep(),
    ev.Lookup(A),
    ev.Allocate(A, 4),
    *STEP,
    ev.Finish(A),
    submit(B, 1, 2, 3, 4, 5),
    ev.BeginStep(),
    ev.Lookup(B),
    ev.Allocate(B, 1),
    *STEP,
    ev.Preempt(B),
)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A trace that conforms."""
    path = tmp_path / "recorded.jsonl"
    path.write_text(trace_text(REUSE))
    return path


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """Four requests that share a prefix and fill the smallest pool."""
    return write_workload(tmp_path, [[0, 1, 2 + n] for n in range(4)], tail=76)


def write_workload(folder: Path, prompts: list[list[int]], tail: int) -> Path:
    """Requests with these ids, the last of which stands for `tail` tokens."""
    path = folder / "workload.jsonl"
    with path.open("w") as file:
        for n, ids in enumerate(prompts):
            length = 512 * (len(ids) - 1) + tail
            line = {"timestamp": n, "input_length": length, "output_length": 3, "hash_ids": ids}
            file.write(json.dumps(line) + "\n")
    return path


def test_a_recorded_trace_is_judged_and_counted(recorded: Path, tmp_path: Path) -> None:
    ran = run("replay", recorded, "--target", "reference", "--json", tmp_path / "r.json")
    assert ran.status == 0, ran
    assert ran.verdict == (
        f"reference conforms (exact): 2 requests, hit rate 44.4%, {len(REUSE) - 1} events"
    )
    report = json.loads((tmp_path / "r.json").read_text())
    counted = ("requests", "prompt_tokens", "hit_tokens", "steps", "preemptions", "refusals")
    assert [report[name] for name in counted] == [2, 9, 4, 2, 1, 0]
    assert report["verdict"] == "conforms"


def test_a_recorded_trace_can_be_fed_without_judging(recorded: Path) -> None:
    ran = run("replay", recorded, "--no-judge")
    assert ran.status == 0
    assert "optimized not judged" in ran.verdict


def test_a_recorded_trace_can_be_cut_and_run_on_another_pool(recorded: Path) -> None:
    ran = run("replay", recorded, "--limit", "5", "--blocks", "40", "--snapshot-every", "2")
    assert ran.status == 0
    assert "1 requests, hit rate 0.0%, 4 events" in ran.verdict


@pytest.mark.parametrize("target", ["reference", "optimized"])
def test_a_workload_is_judged_and_counted(workload: Path, tmp_path: Path, target: str) -> None:
    ran = run("replay", workload, "--target", target, "--json", tmp_path / "r.json")
    assert ran.status == 0, ran
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["requests"], report["prompt_tokens"], report["output_tokens"]) == (4, 4400, 12)
    assert "judged events per second" in ran.stdout
    for name in ("evictions", "copies", "refusals", "preemptions"):
        assert name in ran.stdout


def test_the_options_of_a_workload_are_heeded(workload: Path) -> None:
    options = ("--groups", "full:64", "--hash-unit", "64", "--max-output", "1", "--limit", "2")
    more = (
        "--token-budget",
        "256",
        "--max-running",
        "1",
        "--blocks",
        "24",
        "--snapshot-every",
        "1",
    )
    ran = run("replay", workload, *options, *more)
    assert ran.status == 0, ran
    assert "2 requests" in ran.verdict


def test_a_workload_that_breaks_a_clause_is_shrunk(tmp_path: Path) -> None:
    workload = write_workload(tmp_path, [[0, 1, 2, 3], [4, 5], [6, 7, 8]], tail=100)
    cache = ("--groups", "full:512", "--hash-unit", "512", "--blocks", "5", "--max-running", "1")
    ran = run(
        *("replay", workload, "--target", CANARY, *cache, "--snapshot-every", "1"),
        *("--failures", tmp_path / "f"),
    )
    assert ran.status == 1, ran
    assert ran.verdict == f"{CANARY} is broken: EVICT.TAKEN"
    [trace] = (tmp_path / "f").glob("*/trace.jsonl")
    assert len(trace.read_text().splitlines()) <= 12


def test_what_a_target_raises_breaks_a_clause_also_unjudged(workload: Path) -> None:
    ran = run("replay", workload, "--target", NAME("Asserts"), "--no-judge")
    assert ran.status == 1, ran
    assert ran.verdict == f"{NAME('Asserts')} is broken: LIVE.ANSWER"
    assert "free list lost block 3" in ran.stdout


def test_a_target_that_hangs_is_given_up_on(
    workload: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "TIME_LIMIT", 0.2)
    assert run("replay", workload, "--target", NAME("Hangs")).is_refused()


def test_a_workload_needs_what_the_target_lacks(workload: Path) -> None:
    ran = run("replay", workload, "--target", NAME("LacksLookup"))
    assert ran.is_refused()
    assert "it lacks lookup, which the replay of a workload needs" in ran.stderr


# --- bad input ------------------------------------------------------------------------------------

BAD_EVENTS: dict[str, tuple[ev.Event, str]] = {
    "an event for a request never submitted": (
        ev.Finish(RequestId("ghost")),
        "line 2: finish: request 'ghost' was not submitted or has ended",
    ),
    "a block out of range": (ev.Evict((BlockId(8),)), "line 2: evict: block 8 is not in 1..7"),
    "the null block": (ev.Evict((BlockId(0),)), "line 2: evict: block 0 is not in 1..7"),
    "a prompt that is too long": (
        submit(A, *range(9)),
        "line 2: submit: 9 tokens are more than max_model_len 8",
    ),
    "a step that was not begun": (ev.EndStep(), "line 2: end_step: no step has begun"),
    "a process of nothing": (ev.Process(), "line 2: process: no executed step is left to process"),
}


@pytest.mark.parametrize("case", BAD_EVENTS)
def test_an_event_that_may_not_be_sent_is_named(tmp_path: Path, case: str) -> None:
    event, says = BAD_EVENTS[case]
    path = tmp_path / "bad.jsonl"
    path.write_text(trace_text([CONFIG, event]))
    ran = run("replay", path, "--json", tmp_path / "r.json", "--failures", tmp_path / "f")
    assert ran.is_refused()
    assert f"{path} {says}" in ran.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["bad.jsonl"]


BAD_LINES = {
    "negative length": (
        '{"event":"allocate","request":"a","num_new_tokens":-1}',
        "allocate: num_new_tokens: expected int >= 0, got -1",
    ),
    "huge length": (
        '{"event":"allocate","request":"a","num_new_tokens":99999999999}',
        "allocate: num_new_tokens: expected int <= 2147483647",
    ),
    "broken line": ('{"event":"allo', "expected one JSON object"),
    "unknown field": ('{"event":"reset","hard":true}', "reset: no such field: hard"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, case: str) -> None:
    line, says = BAD_LINES[case]
    path = tmp_path / "bad.jsonl"
    path.write_text(trace_text([CONFIG]) + line + "\n")
    ran = run("replay", path)
    assert ran.is_refused()
    assert f"{path} line 2: {says}" in ran.stderr


BAD_REQUESTS = {
    "negative length": ('"input_length":-5,"output_length":1', "input_length: expected"),
    "huge length": ('"input_length":1e30,"output_length":1', "input_length: expected"),
    "no length": ('"output_length":1', "input_length: expected this field"),
    "ids that do not match": ('"input_length":5000,"output_length":1', "expected 10 ids"),
}


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_a_request_that_cannot_be_replayed_is_named(tmp_path: Path, case: str) -> None:
    lengths, says = BAD_REQUESTS[case]
    path = tmp_path / "bad.jsonl"
    path.write_text(f'{{"timestamp":0,{lengths},"hash_ids":[0]}}\n')
    ran = run("replay", path)
    assert ran.is_refused()
    assert f"{path} line 1: " in ran.stderr
    assert says in ran.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "got an empty file"),
        ("[1]\n", "expected an event (a field event) or a request of a workload (hash_ids)"),
        ('{"a":1}\n', "expected an event (a field event) or a request of a workload (hash_ids)"),
        ("hello\n", "expected one JSON object"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text(content)
    ran = run("replay", path)
    assert ran.is_refused()
    assert says in ran.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--groups", "full:0"], "block_size must be a multiple of hash_unit"),
        (["--groups", "sliding:16"], "expected full or mamba_align:BLOCK_SIZE"),
        (["--groups", "mamba_align:512"], "at least one full group"),
        (["--hash-unit", "3"], "block_size must be a multiple of hash_unit 3"),
        (["--hash-unit", "0"], "greater than or equal to 1"),
        (["--blocks", "1"], "greater than or equal to 2"),
        (["--blocks", "9" * 12], "expected at most 4194304"),
        (["--token-budget", "9" * 12], "token_budget: expected 1 to"),
        (["--limit", "-1"], "greater than or equal to 1"),
        (["--snapshot-every", "0"], "greater than or equal to 1"),
        (["--target", "nope"], "is unknown"),
        (["--json", "no/such/folder/r.json"], "there is no folder no/such/folder"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    workload: Path, options: list[str], says: str
) -> None:
    ran = run("replay", workload, *options)
    assert ran.is_refused()
    assert says in ran.stderr


def test_the_options_of_a_workload_are_refused_for_recorded_events(recorded: Path) -> None:
    for option, value in (("--groups", "full:2"), ("--hash-unit", "1"), ("--max-output", "3")):
        ran = run("replay", recorded, option, value)
        assert ran.is_refused()
        assert f"{option} is for a workload" in ran.stderr


def test_a_pool_beyond_all_memory_is_refused(tmp_path: Path) -> None:
    big = Config(2**22, 1, (Group(GroupKind.FULL, 2**31 - 1),), 8)
    path = tmp_path / "big.jsonl"
    path.write_text(trace_text([big, submit(A, 1), ev.BeginStep(), ev.Allocate(A, 1)]))
    ran = run("replay", path, "--target", "optimized", "--snapshot-every", "100")
    assert ran.status == 0, ran  # control is judged, bytes are not


def test_a_pool_that_serves_no_request_gives_no_verdict(workload: Path) -> None:
    ran = run("replay", workload, "--blocks", "2")
    assert ran.is_refused()
    assert "fits the pool, nothing was served: raise --blocks" in ran.stderr


def test_a_trace_that_is_not_there_is_refused() -> None:
    ran = run("replay", "no/such/trace.jsonl")
    assert ran.is_refused()
    assert "no/such/trace.jsonl: cannot be read: No such file or directory" in ran.stderr
    assert run("replay").is_refused()
