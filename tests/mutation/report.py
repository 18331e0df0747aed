"""What a hunt came to: the score, and each survivor with the reason why it is none of a fault.

The reasons stand in `explained.toml`. A reason for a mutant that was killed, or that there is not,
is an error: the code moved, and the reason has to be found anew.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from .hunt import Result
from .mutants import ROOT, Mutant
from .stages import Kill

EXPLAINED = Path(__file__).with_name("explained.toml")
LEAST = 0.90
"""The part of all mutants that must be killed."""

KINDS = ("equal", "speed", "unreachable", "unread")
"""Why a survivor is no fault: the function gives the same values; it only costs more or less; no
admissible event leads there; nothing reads the value."""

Key = tuple[str, str, str, int]


class Unusable(Exception):
    """A file of reasons or results cannot be used."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a survivor is none of a fault."""

    kind: str
    why: str


def read_reasons(path: Path = EXPLAINED) -> dict[Key, Reason]:
    """The reasons by the keys of their mutants. Raises `Unusable`."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("survivor", [])
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise Unusable(f"{path.name}: {error}") from None
    reasons: dict[Key, Reason] = {}
    for entry in entries:
        missing = {"where", "kind", "why", "changes"} - entry.keys()
        if missing:
            raise Unusable(f"{path.name}: an entry lacks {', '.join(sorted(missing))}: {entry}")
        if entry["kind"] not in KINDS:
            raise Unusable(
                f"{path.name}: kind must be one of {', '.join(KINDS)}, got {entry['kind']!r}"
            )
        places = [entry["where"]] if isinstance(entry["where"], str) else entry["where"]
        for where, (before, after, *nth) in product(places, entry["changes"]):
            key = where, before, after, *(nth or [1])
            if key in reasons:
                raise Unusable(f"{path.name}: {key} is explained twice")
            reasons[key] = Reason(entry["kind"], entry["why"])
    return reasons


@dataclass(frozen=True, slots=True)
class Report:
    """The results of a hunt, beside the reasons."""

    results: Sequence[Result]
    reasons: Mapping[Key, Reason]
    stale: Sequence[str] = field(default=())

    @property
    def survivors(self) -> list[Mutant]:
        """Those that nobody saw."""
        return [result.mutant for result in self.results if result.kill is None]

    @property
    def unexplained(self) -> list[Mutant]:
        """Those of them that nothing is said about."""
        return [mutant for mutant in self.survivors if mutant.key not in self.reasons]

    @property
    def score(self) -> float:
        """The part that was killed."""
        return 1 - len(self.survivors) / len(self.results) if self.results else 1.0

    @property
    def complaints(self) -> list[str]:
        """What is wrong, a line each."""
        lines = [f"no reason is given why {_told(mutant)} survives" for mutant in self.unexplained]
        lines += self.stale
        if self.score < LEAST:
            lines.append(f"{self.score:.1%} of the mutants are killed, less than {LEAST:.0%}")
        return lines


def report(results: Sequence[Result], reasons: Mapping[Key, Reason]) -> Report:
    """Hold the survivors against the reasons; only of the modules that were hunted."""
    hunted = {result.mutant.key: result for result in results}
    modules = {(result.mutant.package, result.mutant.module) for result in results}
    stale = []
    for key, reason in reasons.items():
        package, module, *_ = key[0].split(".")
        if (package, module) not in modules:
            continue
        if key not in hunted:
            stale.append(f"explained, but there is no such mutant: {key} ({reason.why})")
        elif kill := hunted[key].kill:
            stale.append(f"explained, but {kill.stage} kills it: {_told(hunted[key].mutant)}")
    return Report(results, reasons, stale)


def _told(mutant: Mutant) -> str:
    return f"{mutant}: {mutant.before!r} -> {mutant.after!r}"


def verdict(found: Report) -> str:
    """The hunt in one line."""
    killed = len(found.results) - len(found.survivors)
    explained = len(found.survivors) - len(found.unexplained)
    return (
        f"{killed} of {len(found.results)} mutants killed ({found.score:.1%}), "
        f"{explained} of {len(found.survivors)} survivors explained"
    )


# --- files ----------------------------------------------------------------------------------------


@cache
def fingerprint() -> str:
    """The code that results are of, in a few letters; what a test kills, more tests kill too."""
    digest = hashlib.sha256()
    for folder in ("spec", "reference", "optimized", "kernels", "kvspec"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def as_line(result: Result) -> str:
    """A result as a line of JSON."""
    where, before, after, nth = result.mutant.key
    data: dict[str, Any] = {"code": fingerprint(), "where": where, "line": result.mutant.line}
    data |= {"operator": result.mutant.operator, "before": before, "after": after, "nth": nth}
    kill = result.kill and {"stage": result.kill.stage, "seen": result.kill.seen[:200]}
    return json.dumps(data | {"kill": kill}, ensure_ascii=False) + "\n"


def read_results(path: Path) -> dict[Key, Kill | None]:
    """What a file says became of mutants of the code as it is now. Raises `Unusable`."""
    results: dict[Key, Kill | None] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            data = json.loads(line)
            key = data["where"], data["before"], data["after"], data["nth"]
            kill, code = data["kill"] and Kill(**data["kill"]), data["code"]
        except (ValueError, KeyError, TypeError):
            raise Unusable(f"{path} line {number}: no result of a mutant; remove it") from None
        if code != fingerprint():
            raise Unusable(f"{path} line {number}: of other code than this; remove the file")
        results[key] = kill
    return results


def as_markdown(found: Report, command: str) -> str:
    """The page of the book."""
    lines = [
        "# Mutation by machine",
        "",
        f"Written by `{command}`. {verdict(found)}.",
        "",
        "What is mutated, by which operators, and what is left alone: `tests/mutation/mutants.py`. "
        "What counts as killed: `tests/mutation/stages.py`. *First seen by*: the cheapest check "
        "that saw it, in this order; those behind it were not run.",
        "",
        *_table("module", found, lambda m: f"{m.package}/{m.module}.py"),
        "",
        *_table("operator", found, lambda m: m.operator),
        "",
        "## Survivors",
        "",
        "*equal*: the function gives the same values. *speed*: it only costs more or less. "
        "*unreachable*: no admissible event leads there. *unread*: nothing reads the value.",
        "",
        "| where | before | after | kind | why |",
        "|---|---|---|---|---|",
    ]
    for mutant in found.survivors:
        reason = found.reasons.get(mutant.key, Reason("-", "**not explained**"))
        where = f"{mutant.package}/{mutant.module}.py `{mutant.where}`"
        cells = where, _code(mutant.before), _code(mutant.after), reason.kind, reason.why
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _table(what: str, found: Report, of: Any) -> list[str]:
    stages = list(
        dict.fromkeys(s for s in ORDER if any(r.kill and r.kill.stage == s for r in found.results))
    )
    lines = [f"| {what} | mutants | killed | score | " + " | ".join(stages) + " | survived |"]
    lines.append("|---|" + "---:|" * (len(stages) + 4))
    rows: dict[str, list[Result]] = {}
    for result in found.results:
        rows.setdefault(of(result.mutant), []).append(result)
    rows["all"] = list(found.results)
    for name, results in rows.items():
        seen = Counter(result.kill.stage for result in results if result.kill)
        killed = sum(seen.values())
        cells = [len(results), killed, f"{killed / len(results):.1%}"]
        cells += [seen[stage] or "" for stage in stages]
        lines.append(f"| {name} | " + " | ".join(map(str, [*cells, len(results) - killed])) + " |")
    return lines


ORDER = ("import", "scenarios", "structures", "rules", "walks", "machine")


def _code(text: str) -> str:
    escaped = " ".join(text.split()).replace("|", "\\|")
    return f"`{escaped}`"
