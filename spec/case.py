"""One event before the judge: the draft of the next state, and the clauses it is held to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from . import marks as m
from .clauses import CLAUSES, FENCE_HELD, Clause, Predicate, Profile, equal
from .state import Draft, Due, State
from .types import BlockId, Config, RequestId, Step, Tables


@dataclass(frozen=True, slots=True)
class Violation:
    """A clause that an observation broke."""

    clause: Clause
    observed: Any
    allowed: Any
    where: str = ""

    def __str__(self) -> str:
        where = f" ({self.where})" if self.where else ""
        return (
            f"{self.clause.id}{where}: observed {self.observed!r}, allowed {self.allowed!r}. "
            f"{self.clause.statement}"
        )


class Broken(Exception):
    """Carries a violation out of the functions that look for it."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


@dataclass(slots=True)
class Ledger:
    """How often each clause could have failed, and how often each mark was seen.

    `runs` counts the runs of a search, `seen` in how many of them each mark was.
    """

    exercised: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, other: Ledger) -> None:
        """Add what another ledger counted."""
        self.exercised.update(other.exercised)
        self.marks.update(other.marks)
        self.seen.update(other.seen)
        self.runs += other.runs

    def end_run(self, before: Counter[str]) -> list[str]:
        """Count a run, given the marks as they were before it; returns those that it saw."""
        new = sorted(mark for mark, count in self.marks.items() if count > before[mark])
        self.runs += 1
        self.seen.update(new)
        return new


class Case:
    """What the functions of the judge work on."""

    def __init__(self, state: State, profile: Profile, ledger: Ledger) -> None:
        self.before = state
        self.draft = Draft(state)
        self.profile = profile
        self.ledger = ledger
        self._due: list[Due] = []

    @property
    def config(self) -> Config:
        """The cache's configuration."""
        return self.before.config

    @property
    def accounting(self) -> bool:
        """Whether the target shows its books, and its keys are those the rules give."""
        return self.profile.covers(Profile.ACCOUNTING)

    def require(self, clause: Clause, observed: Any, allowed: Any, where: str = "") -> None:
        """Hold the target to a clause in a state in which it could break it."""
        if self.profile.covers(clause.profile):
            self._weigh(clause, clause.holds, observed, allowed, where)

    def settle(self, due: Due, observed: Any, allowed: Any) -> None:
        """Hold the target to what a snapshot owes: the value, whatever the clause is about."""
        where = f"{due.what} of block {due.block}"
        self._weigh(CLAUSES[due.clause], equal, observed, allowed, where)

    def _weigh(
        self, clause: Clause, holds: Predicate, observed: Any, allowed: Any, where: str
    ) -> None:
        self.ledger.exercised[clause.id] += 1
        if not holds(observed, allowed):
            raise Broken(Violation(clause, observed, allowed, where))

    def mark(self, mark: m.Mark) -> None:
        """Note that a rare state was reached."""
        self.ledger.marks[mark.id] += 1

    def owe(self, clause: Clause, what: str, block: BlockId) -> None:
        """The next snapshot has to show this block's "key" or "count" as this event left it."""
        if self.accounting:
            self._due.append(Due(clause.id, what, block))

    def release(self, lists: Tables, fence: Step) -> None:
        """Each list's blocks lose a holder; behind the fence when a step may touch them."""
        if not any(lists):
            return
        if not self.config.deferral or fence <= self.before.processed:
            self.free(lists)
            return
        self.draft.set(fenced=(*self.draft.fenced, (fence, lists)))
        self.mark(m.FENCE_OUTLIVES)
        for blocks in lists:
            for block in blocks:
                self.owe(FENCE_HELD, "count", block)

    def free(self, lists: Tables) -> None:
        """Each list's blocks lose a holder, tails first."""
        for blocks in lists:
            for block in reversed(blocks):
                self.draft.drop(block)
            unheld = dict.fromkeys(block for block in blocks if not self.draft.count(block))
            self.draft.set(freed=(*self.draft.freed, tuple(unheld)))

    def forget_zeroing(self, blocks: Iterable[BlockId]) -> None:
        """Blocks leave their only holder: the next step has no business with them."""
        gone = frozenset(block for block in blocks if self.draft.count(block) == 1)
        self.draft.set(
            zero_due=self.draft.zero_due - gone, zero_allowed=self.draft.zero_allowed - gone
        )

    def kill_offers(self, name: RequestId) -> None:
        """A hand-off that was not drained dies with its request."""
        if name in self.draft.offers:
            self.draft.remove("offers", name)
            self.draft.set(dead_offers=self.draft.dead_offers | {name})
            self.mark(m.DIES_UNDRAINED)

    def rollback(self) -> None:
        """Forget what was worked out: nothing happened."""
        self.draft, self._due = Draft(self.before), []
        self.draft.set(last_lookup=None, freed=(), free_list=None)

    def close(self) -> State:
        """The next state."""
        if self._due:
            self.draft.set(due=(*self.draft.due, *self._due))
        return self.draft.freeze()
