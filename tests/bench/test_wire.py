"""`kvspec bench wire` sends the same events both ways."""

from kvspec.bench.wire import measure, workload_events
from tests.cli.run import run


def test_both_ways_are_measured() -> None:
    cost = measure("reference", rounds=1)
    assert cost.events == len(workload_events(0)) > 500
    assert cost.over_wire > cost.in_process > 0


def test_a_target_behind_the_wire_is_refused() -> None:
    ran = run("bench", "wire", "--target", "cmd:true")
    assert ran.is_refused()
    assert "behind the wire already" in ran.stderr
