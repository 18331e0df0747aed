from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kvspec.errors import BadInput, TargetUnusable
from kvspec.reference.manager import Manager
from kvspec.replay import Totals, parse_groups, replay_config, replay_workload
from kvspec.scheduler import Limits
from kvspec.spec import events as ev
from kvspec.spec.case import Ledger
from kvspec.spec.clauses import Profile
from kvspec.spec.types import Group, GroupKind
from kvspec.targets import find_factory
from kvspec.workload import Arrival, generated_workload, measure_reuse, read_workload

TRACE = Path(
    os.environ.get("KVSPEC_TRACE")
    or Path(__file__).parents[3] / "shared/traces/mooncake_conversation.jsonl"
)
SCARCE = 32
"""Blocks that do not hold all conversations of the generated workload at once."""


def run(target: str = "reference", blocks: int = 512, **options: Any) -> Totals:
    arrivals = options.pop("arrivals", None) or generated_workload(1)
    config = replay_config(options.pop("groups", "full:512,mamba_align:512"), blocks=blocks)
    return replay_workload(arrivals, target, find_factory(target), config, **options)


@pytest.mark.parametrize("blocks", [SCARCE, 512])
@pytest.mark.parametrize(
    "groups",
    [
        "full:512,mamba_align:512",
        "full:128",
        "full:128,full:256+eagle",
        "full:256+zeroed,mamba_align:512+zeroed,mamba_align:256",
    ],
)
def test_both_managers_conform_with_equal_totals(groups: str, blocks: int) -> None:
    scale = 8 if groups != "full:512,mamba_align:512" else 1
    plain = run("reference", blocks * scale, groups=groups)
    assert plain.judged
    assert run("optimized", blocks * scale, groups=groups, profile=Profile.EXACT) == plain
    unjudged = run("optimized", blocks * scale, groups=groups, judged=False)
    assert unjudged == replace(plain, evictions=None, judged=False)


def test_a_scarce_pool_refuses_preempts_and_evicts_and_still_serves_everyone() -> None:
    totals = run(blocks=SCARCE)
    assert totals.refusals
    assert totals.preemptions
    assert totals.evictions
    assert totals.copies
    workload = generated_workload(1)
    assert totals.infeasible == 0
    assert totals.requests == len(workload)
    assert totals.prompt_tokens == sum(a.input_length for a in workload)
    assert totals.output_tokens == sum(a.output_length for a in workload)


def test_an_ample_pool_of_attention_serves_the_upper_bound() -> None:
    totals = run(blocks=4096, groups="full:128")
    assert totals.hit_tokens == measure_reuse(generated_workload(1), 128).servable_tokens
    assert totals.hit_rate == totals.hit_tokens / totals.prompt_tokens
    assert totals.evictions == totals.preemptions == 0


@pytest.mark.parametrize(
    "limits",
    [
        Limits(token_budget=1),
        Limits(token_budget=100, max_running=3),
        Limits(max_running=1),
        Limits(long_prefill_cap=200),
        Limits(token_budget=600, long_prefill_cap=550, max_output=2),
        Limits(max_output=0),
    ],
)
def test_every_request_ends_within_the_limits(limits: Limits) -> None:
    workload = [replace(a, output_length=2) for a in generated_workload(3, conversations=3)]
    totals = run(blocks=SCARCE, arrivals=workload, limits=limits)
    outputs = 2 if limits.max_output is None else limits.max_output
    assert totals.output_tokens == len(workload) * outputs


def test_what_never_fits_is_dropped() -> None:
    workload = [
        Arrival(0, 512 * 6, 1, tuple(range(6))),  # 6 blocks and a state
        Arrival(1, 512 * 4, 1, (0, 1, 2, 3)),
        Arrival(2, 512 * 4, 512 * 2, (0, 1, 2, 3)),  # its output does not fit
    ]
    totals = run(blocks=7, arrivals=workload)
    assert (totals.requests, totals.infeasible) == (3, 2)
    assert totals.prompt_tokens == 512 * 4
    tight = replay_config(max_model_len=512 * 4)
    totals = replay_workload(workload, "reference", Manager, tight)
    assert (totals.requests, totals.infeasible) == (3, 3)


def test_a_hit_that_needs_one_block_too_many_is_given_up() -> None:
    again = Arrival(0, 700, 1, (0, 1))
    alone = Limits(max_running=1)
    totals = run(blocks=5, arrivals=[again, again], limits=alone)  # 2 blocks and 2 states fit
    assert (totals.infeasible, totals.hit_tokens) == (0, 0)
    assert totals.refusals == 1
    totals = run(blocks=6, arrivals=[again, again], limits=alone)  # the copy's source too
    assert (totals.refusals, totals.hit_tokens) == (0, 640)


def test_totals_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "from tests.replay.test_replay import run, SCARCE\n"
        "print(run(blocks=SCARCE), run('optimized', SCARCE, judged=False))"
    )
    here = f"{run(blocks=SCARCE)} {run('optimized', SCARCE, judged=False)}"
    for seed in ("1", "77"):
        ended = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        assert ended.stdout.strip() == here


def test_the_books_are_asked_for_every_few_steps_and_at_the_end() -> None:
    few, many = Ledger(), Ledger()
    totals = run(ledger=few, snapshot_every=10**9)
    run(ledger=many, snapshot_every=1)
    assert few.exercised["REF.COUNT"] == 1
    assert many.exercised["REF.COUNT"] == totals.steps + 1


def test_progress_reaches_the_number_of_requests() -> None:
    seen: list[int] = []
    totals = run(progress=seen.append)
    assert seen == sorted(seen)
    assert len(seen) == totals.steps
    assert seen[-1] == totals.requests


class NeverGrants(Manager):
    """Refuses whatever it is asked."""

    def allocate(self, *_: Any, **__: Any) -> ev.Grant:
        return ev.Grant(False, ((), ()), ((), ()))


class NoChunk(Manager):
    """Leaves the chunk rule to the scheduler."""

    def configure(self, config: Any) -> ev.Capabilities:
        return replace(super().configure(config), lacks=("chunk",))


def test_a_target_that_never_grants_is_named_and_does_not_hang() -> None:
    with pytest.raises(TargetUnusable, match=r"target stubborn: the replay is stuck in step 1"):
        replay_workload(
            generated_workload(1), "stubborn", NeverGrants, replay_config(), judged=False
        )


def test_a_target_without_the_chunk_rule_can_be_replayed() -> None:
    config = replay_config(blocks=512)
    totals = replay_workload(generated_workload(1), "no_chunk", NoChunk, config)
    assert totals.hit_tokens == run().hit_tokens


@pytest.mark.parametrize(
    "make",
    [
        lambda: parse_groups(""),
        lambda: parse_groups("full"),
        lambda: parse_groups("full:x"),
        lambda: parse_groups("full:-1"),
        lambda: parse_groups("half:16"),
        lambda: parse_groups("full:16+fast"),
        lambda: parse_groups("full:16,"),
        lambda: replay_config("mamba_align:512"),
        lambda: replay_config("full:0"),
        lambda: replay_config(hash_unit=7),
        lambda: replay_config(hash_unit=0),
        lambda: replay_config(blocks=1),
        lambda: replay_config(blocks=10**9),
        lambda: replay_config(max_model_len=0),
        lambda: Limits(token_budget=0),
        lambda: Limits(max_running=-1),
        lambda: Limits(long_prefill_cap=-1),
        lambda: Limits(max_output=2**30),
    ],
)
def test_a_wrong_option_gets_one_line(make: Callable[[], object]) -> None:
    with pytest.raises(BadInput) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_groups_are_read_with_their_flags() -> None:
    assert parse_groups("full:16+eagle, mamba_align:512+zeroed") == (
        Group(GroupKind.FULL, 16, eagle=True),
        Group(GroupKind.MAMBA_ALIGN, 512, zeroed=True),
    )


@pytest.mark.skipif(not TRACE.is_file(), reason=f"no public trace at {TRACE} (or KVSPEC_TRACE)")
def test_the_start_of_the_public_trace_conforms() -> None:
    totals = run(
        "optimized",
        blocks=4096,
        arrivals=read_workload(TRACE, 20),
        limits=Limits(max_output=8),
        profile=Profile.EXACT,
    )
    assert (totals.requests, totals.infeasible) == (20, 0)
    assert totals.hit_tokens
    assert totals.copies
