"""What cannot be used ends with 2, one clear line, and nothing written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kvspec import targets

from .broken_targets import NAME
from .run import ROOT, run, start

UNUSABLE_TARGETS = {
    "nope": "target 'nope' is unknown; use optimized, reference, vllm, package.module:factory or",
    "": "target '' is unknown",
    "cmd:": "target 'cmd:': names no program; use cmd:PROGRAM ARGS",
    "no_such_module:x": "No module named 'no_such_module'",
    "kvspec.targets:nope": "kvspec.targets has no callable nope",
    NAME("NAME.nope"): "has no callable NAME.nope",
    NAME("raises"): "RuntimeError: no device found while it was made and configured",
    NAME("leaves"): "SystemExit: 0 while it was made and configured",
    NAME("NoConfigure"): "has no attribute 'configure'",
    NAME("NoLookup"): "it has no method lookup; write it, or name it in Capabilities.lacks",
    NAME("WrongShape"): "an answer has the wrong form: expected Hit, got int",
    NAME("WrongField"): "expected Hit, Expected `int`, got `str` - at `$.num_tokens`",
    NAME("WrongGroups"): "blocks of Hit has 7 lists, there are 2 groups",
    NAME("ShowsMore"): "configure says it shows ['weather']; what can be shown is refcounts",
    NAME("LacksAll"): "'submit']; nothing can be judged without",
    NAME("LacksOdd"): "configure says it lacks ['weather']; there is no such event or feature",
}


@pytest.mark.parametrize("target", UNUSABLE_TARGETS)
def test_an_unusable_target_is_named(tmp_path: Path, target: str) -> None:
    ran = run("check", "--target", target, "--examples", "2", "--failures", tmp_path / "f")
    assert ran.is_refused()
    assert UNUSABLE_TARGETS[target] in ran.stderr
    assert not (tmp_path / "f").exists()


def test_a_profile_that_the_target_does_not_show_is_refused() -> None:
    ran = run("check", "--target", NAME("ShowsNothing"), "--profile", "accounting")
    assert ran.is_refused()
    assert "profile accounting needs a target that shows refcounts" in ran.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--profile", "strict"], "'strict' is not one of"),
        (["--examples", "0"], "greater than or equal to 1"),
        (["--examples", "many"], "valid integer"),
        (["--examples", "9" * 30], "less than or equal to 1000000"),
        (["--seed", "-1"], "greater than or equal to 0"),
        (["--max-seconds", "0"], "--max-seconds must be a number above 0, got 0.0"),
        (["--max-seconds", "nan"], "--max-seconds must be a number above 0, got nan"),
        (["--no-such-option"], "No such option"),
        (["--json"], "--json"),
        (["--json", "no/such/folder/report.json"], "there is no folder no/such/folder"),
        (["--json", "."], "is a folder; name a file"),
        (["--junit", "no/such/folder/report.xml"], "there is no folder no/such/folder"),
        (["--failures", "LICENSE/failures"], "LICENSE is a file; name a folder"),
        (["extra"], "unexpected extra argument"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    options: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    ran = run("check", "--target", "reference", *options)
    assert ran.is_refused()
    assert says in ran.stderr


def test_an_unknown_command_is_refused() -> None:
    assert run("chek").is_refused()
    assert run().is_refused()


def test_nothing_is_written_when_the_options_are_wrong(tmp_path: Path) -> None:
    ran = run("check", "--json", tmp_path / "report.json", "--junit", tmp_path / "no" / "x.xml")
    assert ran.is_refused()
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_hangs_is_given_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "TIME_LIMIT", 0.2)
    began = time.monotonic()
    ran = run("check", "--target", NAME("Hangs"), "--examples", "2")
    assert ran.is_refused()
    assert "no answer to finish within 0.2 seconds; it hangs" in ran.stderr
    assert time.monotonic() - began < 10


def test_an_error_of_our_own_is_no_verdict_on_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvspec.check.check", lambda *_: 1 / 0)
    ran = run("check")
    assert ran.status == 2
    assert ran.verdict.startswith("unusable: an error in kvspec itself, please report it: Zero")
    assert "Traceback" in ran.stderr


def heed_interrupts() -> None:
    """Whoever starts the tests in the background ignores interrupts, and so would the child."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_until_at_work(pid: int) -> None:
    """Wait until a process has used more processor time than its start takes."""
    for _ in range(600):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
        if (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") > 2.5:
            return
        time.sleep(0.2)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to watch it by")
def test_an_interrupted_check_says_so() -> None:
    command = [sys.executable, "-m", "kvspec.cli", "check", "--target", "reference"]
    with subprocess.Popen(
        [*command, "--examples", "100000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        preexec_fn=heed_interrupts,
    ) as process:
        wait_until_at_work(process.pid)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.decode().endswith("unusable: interrupted before a verdict\n")
    assert b"Traceback" not in err


def test_a_reader_that_leaves_is_no_error() -> None:
    command = f"{sys.executable} -m kvspec.cli check --target reference --examples 1 | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.startswith("clause")
    assert "Traceback" not in done.stderr


def test_errors_are_the_same_in_a_process_of_its_own() -> None:
    assert start("check", "--target", "nope").is_refused()
