"""`kvspec mutants`: hold the spec to its mutants, and say which of them it sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from kvspec.errors import BadInput
from kvspec.files import write_whole

from .catalogue import MUTANTS
from .hunt import Outcome, Plan, cores, hunt_all
from .matrix import as_json, as_markdown, show, verdict_line

__all__ = ["Asked", "Plan", "list_mutants", "run"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for; no ids mean all."""

    ids: tuple[str, ...] = ()
    plan: Plan = field(default_factory=Plan)
    workers: int = 0
    json: Path | None = None
    markdown: Path | None = None


def run(asked: Asked, console: Console, errors: Console) -> int:
    """Hunt, write, print; the exit status. Raises `BadInput`, also for a patch that is stale."""
    unknown = [id for id in asked.ids if id not in MUTANTS]
    if unknown:
        raise BadInput(f"there is no mutant {unknown[0]}; kvspec mutants --list names all")
    ids = asked.ids or tuple(MUTANTS)
    workers = asked.workers or cores()
    outcomes = hunt_all(ids, asked.plan, workers, _progress(errors, len(ids)))
    if asked.json is not None:
        write_whole(asked.json, as_json(outcomes, asked.plan.seed))
    if asked.markdown is not None:
        write_whole(asked.markdown, as_markdown(outcomes, _command(asked), f"{workers} cores"))
    show(outcomes, console)
    print(verdict_line(outcomes), flush=True)
    return 0 if all(outcome.kill for outcome in outcomes) else 1


def _command(asked: Asked) -> str:
    words = ["kvspec mutants", *asked.ids]
    words += ["--all-drivers"] if asked.plan.all_drivers else []
    words += [f"--seed {asked.plan.seed}"] if asked.plan.seed else []
    return " ".join(words)


def _progress(errors: Console, total: int) -> Callable[[Outcome], None]:
    """A line per mutant on a terminal; else nothing."""
    done = 0

    def log(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        if errors.is_terminal:
            errors.print(f"{done}/{total} {outcome.mutant}: {outcome.killer or 'nobody'}")

    return log


def list_mutants(console: Console) -> None:
    """Print every mutant: its id, the clause it breaks, its atlas rows, and what is wrong."""
    for mutant in MUTANTS.values():
        rows = f" ({', '.join(mutant.atlas)})" if mutant.atlas else ""
        console.print(f"{mutant.id}  {mutant.clause}{rows}  {mutant.title}", soft_wrap=True)
