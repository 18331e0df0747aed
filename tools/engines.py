"""`make engines`: hold the KV-cache managers of real engines to the spec, and tabulate.

Each engine gets an environment of its own under .engines/, with exactly the packages that
tools/engines/NAME-VERSION.txt names: what its cache manager imports, and no more. No GPU is used.
What an engine breaks is a result and no failure of this command: the exit status is 2 only where an
engine could not be judged at all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLACE, PACKAGES = ROOT / ".engines", ROOT / "tools" / "engines"
TABLE = ROOT / "docs" / "numbers" / "engines.md"


@dataclass(frozen=True, slots=True)
class Engine:
    """A package of one version, and the target that drives it."""

    package: str
    version: str
    target: str

    @property
    def name(self) -> str:
        """What its environment is called."""
        return f"{self.package}-{self.version}"


ENGINES = (Engine("vllm", "0.28.0", "vllm"), Engine("vllm", "0.33.0", "vllm"))
PROFILES = ("soundness", "accounting")


class Failed(Exception):
    """An environment could not be made, or an engine not be judged."""


def environment(engine: Engine) -> Path:
    """The folder of programs of the engine's environment, made where it is missing."""
    place = PLACE / engine.name
    wanted = (PACKAGES / f"{engine.name}.txt").read_text()
    stamp = place / ".installed"
    if stamp.is_file() and stamp.read_text() == wanted:
        return place / "bin"
    print(f"making {place}", flush=True)
    python = str(place / "bin" / "python")
    install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps"]
    packages = str(PACKAGES / f"{engine.name}.txt")
    for command in (
        [sys.executable, "-m", "venv", str(place)],
        [*install, "setuptools>=77", "-r", packages],
        [*install, f"{engine.package}=={engine.version}"],
        [*install, "--no-build-isolation", "-e", str(ROOT)],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise Failed(f"{engine.name}: {' '.join(command[-3:])}: {''.join(last)}")
    stamp.write_text(wanted)
    return place / "bin"


def judged(engine: Engine, profile: str, given: Namespace) -> dict[str, Any]:
    """The report of a check."""
    programs, out = environment(engine), PLACE / f"{engine.name}-{profile}"
    report = out.with_suffix(".json")
    report.unlink(missing_ok=True)
    command = [str(programs / "kvspec"), "check", "--target", engine.target, "--profile", profile]
    command += ["--examples", str(given.examples), "--seed", str(given.seed)]
    command += ["--max-seconds", str(given.seconds), "--json", str(report), "--failures", str(out)]
    print(f"{engine.name}, {profile}", flush=True)
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"NO_COLOR": "1"}
    )
    if done.returncode not in (0, 1) or not report.is_file():
        said = [line for line in done.stderr.splitlines() if line.startswith("kvspec")]
        raise Failed(f"{engine.name}, {profile}: {''.join(said[-1:]) or done.returncode}")
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def row(engine: Engine, profile: str, found: dict[str, Any]) -> str:
    """One line of the table."""
    clauses = found["clauses"]
    broken = [one["id"] for one in clauses if one["broken"]]
    held = [one for one in clauses if one["exercised"] and not one["broken"]]
    unused = [one["id"] for one in clauses if not one["exercised"] and not one["broken"]]
    cells = [
        f"{engine.package} {engine.version}",
        profile,
        str(len(held)),
        ", ".join(broken) or "none",
        ", ".join(unused) or "none",
        f"{found['events']:,}",
    ]
    return f"| {' | '.join(cells)} |"


def reasons(engine: Engine, profile: str, found: dict[str, Any]) -> list[str]:
    """What was not done, and why, the commonest reasons first."""
    skipped = Counter(one["skipped"] for one in found["scenarios"] if one["skipped"])
    lines = [f"### {engine.package} {engine.version}, {profile}", ""]
    for reason, times in skipped.most_common():
        lines.append(f"- {times} of {len(found['scenarios'])} scenarios: {reason}")
    for one in found["scenarios"]:
        if not one["passed"] and not one["skipped"]:
            lines.append(f"- scenario {one['id']} ({one['title']}): {one['problem']}")
    for one in found["capabilities"]:
        if not one["used"]:
            lines.append(f"- {one['id']}: {one['reason'] or 'no run used it'}")
    for one in found["clauses"]:
        if not one["exercised"] and not one["broken"]:
            lines.append(f"- {one['id']}: {one['reason'] or 'no run could have broken it'}")
    return [*lines, ""]


def main() -> int:
    """Judge every engine in every profile and write the table."""
    parser = ArgumentParser(prog="python tools/engines.py", description=__doc__)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=240, help="for each engine and profile")
    given = parser.parse_args()
    rows, why, status = [], [], 0
    for engine in ENGINES:
        for profile in PROFILES:
            try:
                found = judged(engine, profile, given)
            except Failed as failed:
                print(f"engines: {failed}", file=sys.stderr)
                status = 2
                continue
            rows.append(row(engine, profile, found))
            why += reasons(engine, profile, found)
    options = f"--examples {given.examples} --seed {given.seed} --seconds {given.seconds}"
    head = [
        "# Real engines",
        "",
        f"Written by `python tools/engines.py {options}` (`make engines`). How the engines are",
        "driven, and what was found: [Engines](../engines.md).",
        "",
        "| engine | profile | clauses held | broken | not exercised | events |",
        "|---|---|---:|---|---|---:|",
    ]
    print("\n".join(head[5:] + rows))
    if not status:
        text = "\n".join([*head, *rows, "", "## What was not done, and why", "", *why]).rstrip()
        TABLE.write_text(text + "\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
