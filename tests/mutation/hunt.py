"""Hunting many mutants, in several processes that each fork one for a look at a mutant."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from .mutants import Mutant, modules, mutants_of
from .stages import STAGES, Kill, Stage, hunt, seen_by_scenarios, with_catalogue
from .world import look, preload


class Unsound(Exception):
    """A stage sees something where nothing is mutated: its kills would say nothing."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant; `kill` is None where it survived."""

    mutant: Mutant
    kill: Kill | None


def hunt_all(
    package: str,
    mutants: Sequence[Mutant],
    workers: int,
    log: Callable[[Result], None] = lambda _: None,
) -> list[Result]:
    """Hunt mutants of one package; the results are in their order. Raises `Unsound`."""
    if not mutants:
        return []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, preload, (package,)) as pool:
        seen = [*pool.map(_look_at_sound, [package] * 9, range(len(STAGES[package])))]
        for stage, what in zip(STAGES[package], seen, strict=True):
            if what is not None:
                raise Unsound(f"{stage.name} of {package} sees, with nothing mutated: {what}")
        ids = pool.submit(_catalogued).result() if package == "spec" else ""
        results = []
        for result in _each(pool, mutants, ids):
            log(result)
            results.append(result)
        return results


def _each(pool: ProcessPoolExecutor, mutants: Sequence[Mutant], ids: str) -> Iterator[Result]:
    # A mutant carries the text of its module: send what finds it again.
    where = [(m.package, m.module, mutants_of(m.package, m.module).index(m)) for m in mutants]
    for mutant, kill in zip(mutants, pool.map(_hunt, where, [ids] * len(where)), strict=True):
        yield Result(mutant, kill)


def _hunt(where: tuple[str, str, int], ids: str) -> Kill | None:
    package, module, at = where
    stages: Sequence[Stage] = STAGES[package]
    if package == "spec":
        stages = with_catalogue(stages, frozenset(ids.split()))
    return hunt(mutants_of(package, module)[at], stages)


def _look_at_sound(package: str, at: int) -> str | None:
    stage = STAGES[package][at]
    return look(None, package, stage.bare, stage.run, stage.seconds)


def _catalogued() -> str:
    seen = look(None, "spec", False, seen_by_scenarios, 400)
    if not seen or "not seen" in seen:
        raise Unsound(f"the catalogue of the sound spec: {seen}")
    return seen


def all_of(package: str, only: Iterable[str] = ()) -> list[Mutant]:
    """The mutants of a package, or of some modules of it."""
    names = list(only) or modules(package)
    return [mutant for name in names for mutant in mutants_of(package, name)]
