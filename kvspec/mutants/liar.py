"""A sound manager whose books are wrong exactly where one clause speaks of them.

Most clauses about books name what an event owes the next snapshot: a key, or a count. A manager
that keeps every other rule and shows only that wrong is seen by that clause or by none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kvspec.optimized.manager import Manager
from kvspec.spec import events as ev
from kvspec.spec.case import Ledger, Violation
from kvspec.spec.clauses import Clause, Profile
from kvspec.spec.judge import initial_state, judge_admitted
from kvspec.spec.state import Due, State
from kvspec.spec.types import BlockId, Config, GroupId

LIAR = "liar"
"""The id of such a manager among faults."""

_EVENTS = {name: kind for kind, name in ev.EVENT_NAMES.items()}
_GHOST = ((GroupId(0), "a key that nothing explains"),)


class Liar:
    """The optimized manager, but its books are wrong of each block for which `clause` is due."""

    def __init__(self, clause: Clause) -> None:
        self.clause = clause
        self.manager = Manager()
        self.state: State

    def configure(self, config: Config) -> ev.Capabilities:
        """As the manager; what is due is worked out by a judge of its own."""
        self.state = initial_state(config)
        return self.manager.configure(config)

    def __getattr__(self, name: str) -> Any:
        """Each event, answered by the manager and followed by the own judge."""
        method, kind = getattr(self.manager, name), _EVENTS.get(name)
        if kind is None:
            return method

        def answer(*arguments: Any) -> ev.Observation:
            event, due = kind(*arguments), self.state.due
            try:
                told: ev.Observation = method(*arguments)
            except ev.Rejected as rejected:
                self._follow(event, ev.Rejection(str(rejected)))
                raise
            self._follow(event, told)
            return self._wrong(told, due) if isinstance(told, ev.Books) else told

        return answer

    def _follow(self, event: ev.Event, told: ev.Observation) -> None:
        verdict = judge_admitted(self.state, event, told, Profile.ACCOUNTING, Ledger())
        assert not isinstance(verdict, Violation), verdict
        self.state = verdict

    def _wrong(self, books: ev.Books, dues: tuple[Due, ...]) -> ev.Books:
        assert books.refcounts is not None
        assert books.keys is not None
        counts, keys = dict(books.refcounts), dict(books.keys)
        for block in self._spoken_of(dues, "count"):
            counts[block] = counts.get(block, 0) + 1
        for block in self._spoken_of(dues, "key"):
            if keys.pop(block, None) is None:
                keys[block] = _GHOST
        return replace(books, refcounts=counts, keys=keys)

    def _spoken_of(self, dues: tuple[Due, ...], what: str) -> set[BlockId]:
        """The blocks of which this clause alone speaks."""
        ours = {d.block for d in dues if d.what == what and d.clause == self.clause.id}
        return ours - {d.block for d in dues if d.what == what and d.clause != self.clause.id}
