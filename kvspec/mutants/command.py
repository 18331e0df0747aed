"""`kvspec mutants`: hold the spec to its mutants, or take its clauses away one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rich.console import Console

from kvspec.errors import BadInput
from kvspec.files import write_whole
from kvspec.spec.clauses import CLAUSES

from .catalogue import MUTANTS
from .drivers import ALL_DRIVERS, DRIVERS
from .hunt import Plan, cores, hunt_all, in_processes
from .losses import losses_as_json, losses_as_markdown, losses_line, show_losses
from .matrix import as_json, as_markdown, show, verdict_line
from .without import lose

__all__ = ["Asked", "list_mutants", "plan_of", "run", "run_without"]


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
    log = _progress(errors, len(ids))
    outcomes = hunt_all(
        ids, asked.plan, workers, lambda o: log(o.mutant, o.killer or "nobody sees it")
    )
    if asked.json is not None:
        write_whole(asked.json, as_json(outcomes, asked.plan.seed))
    if asked.markdown is not None:
        write_whole(asked.markdown, as_markdown(outcomes, _command(asked), f"{workers} cores"))
    show(outcomes, console)
    print(verdict_line(outcomes), flush=True)
    return 0 if all(outcome.kill for outcome in outcomes) else 1


def run_without(asked: Asked, console: Console, errors: Console) -> int:
    """Take each clause away in turn; the exit status. Raises `BadInput`."""
    unknown = [id for id in asked.ids if id not in CLAUSES]
    if unknown:
        raise BadInput(f"there is no clause {unknown[0]}; the book of clauses lists all")
    ids = asked.ids or tuple(CLAUSES)
    workers = asked.workers or cores()
    losses, log = [], _progress(errors, len(ids))
    for loss in in_processes(partial(lose, seed=asked.plan.seed), ids, workers):
        log(loss.clause, loss.passes or "nothing passes")
        losses.append(loss)
    if asked.json is not None:
        write_whole(asked.json, losses_as_json(losses, asked.plan.seed))
    if asked.markdown is not None:
        write_whole(asked.markdown, losses_as_markdown(losses, _command(asked, "--without")))
    show_losses(losses, console)
    print(losses_line(losses), flush=True)
    return 0 if all(loss.explained for loss in losses) else 1


def _command(asked: Asked, *options: str) -> str:
    words = ["kvspec mutants", *asked.ids, *options]
    if asked.plan.drivers != tuple(DRIVERS):
        words += [f"--driver {name}" for name in asked.plan.drivers]
    words += ["--all-drivers"] if asked.plan.all_drivers else []
    words += [] if asked.plan.shrinks else ["--no-shrink"]
    words += [f"--seed {asked.plan.seed}"] if asked.plan.seed else []
    words += [f"--json {asked.json}"] if asked.json else []
    words += [f"--markdown {asked.markdown}"] if asked.markdown else []
    return " ".join(words)


def _progress(errors: Console, total: int) -> Callable[[str, str], None]:
    """A line for each that is done."""
    done = 0

    def log(id: str, what: str) -> None:
        nonlocal done
        done += 1
        errors.print(f"{done}/{total} {id}: {what}", highlight=False)

    return log


def plan_of(drivers: Sequence[str], *, all_drivers: bool, shrinks: bool, seed: int) -> Plan:
    """What to run. Raises `BadInput` for a driver that does not exist."""
    for name in drivers:
        if name not in ALL_DRIVERS:
            raise BadInput(f"--driver {name}: there is none; use {', '.join(ALL_DRIVERS)}")
    chosen = tuple(dict.fromkeys(drivers)) or tuple(DRIVERS)
    return Plan(chosen, all_drivers=all_drivers, shrinks=shrinks, seed=seed)


def list_mutants(console: Console) -> None:
    """Print every mutant: its id, the clause it breaks, its atlas rows, and what is wrong."""
    for mutant in MUTANTS.values():
        rows = f" ({', '.join(mutant.atlas)})" if mutant.atlas else ""
        console.print(f"{mutant.id}  {mutant.clause}{rows}  {mutant.title}", soft_wrap=True)
