"""Playing a case: a target is sent its events, and each answer is held to what it may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from kvspec.errors import BadInput, ConfigDeclined, EventUnsupported, InvalidInput
from kvspec.spec import events as ev
from kvspec.spec.clauses import CLAUSES, LIVE_ANSWER, Profile
from kvspec.spec.types import Config
from kvspec.targets import Factory, Target, TargetFault

from .matching import Bound, Differs, Parts, hold
from .model import Case, Check, Evict, Step

SNAPSHOT = ev.Snapshot()
_KINDS: dict[str, Any] = {name: kind for kind, name in ev.EVENT_NAMES.items()}


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a case: it passed, failed, or was passed over.

    `steps` were played; `why` says why not all of them, where it is not that one failed. Of a
    failed case the last step played is the wrong one: `field` is what differed in the answer or
    in the books, `clause` the rule, and `trace` are the events, the configuration first.
    """

    id: str
    result: Literal["passed", "failed", "skipped"]
    steps: int = 0
    why: str = ""
    clause: str = ""
    event: str = ""
    field: str = ""
    observed: str = ""
    allowed: str = ""
    trace: tuple[ev.Event, ...] = ()


class _Ends(Exception):
    """The case ends before its last step, and nothing was wrong."""


class _Fails(Exception):
    def __init__(self, clause: str, field: str, observed: object, allowed: object) -> None:
        super().__init__(clause)
        self.clause, self.field, self.observed, self.allowed = clause, field, observed, allowed


def play(case: Case, name: str, factory: Factory) -> Played:
    """Play a case on a fresh target.

    The target is held to the accounting profile where it shows all its books, else to soundness.
    Raises `BadInput` for a case that cannot be played, `TargetUnusable`, `TargetHung`.
    """
    try:
        config: Config = msgspec.convert(case.configuration, Config, from_attributes=True)
        target = Target(name, factory, config)
    except msgspec.ValidationError as error:
        raise BadInput(f"configuration: {error}") from None
    except ConfigDeclined as declined:
        return Played(case.id, "skipped", why=str(declined))
    missing = [need for need in case.needs if need in target.capabilities.lacks]
    if missing:
        return Played(case.id, "skipped", why=f"the target lacks {', '.join(missing)}")
    player = _Player(target, Bound(config.num_blocks))
    for number, step in enumerate(case.steps, start=1):
        try:
            player.take(step)
        except _Fails as fails:
            return Played(
                case.id,
                "failed",
                steps=number,
                clause=fails.clause,
                event=player.event,
                field=fails.field,
                observed=in_words(fails.observed),
                allowed=in_words(fails.allowed),
                trace=(config, *player.sent),
            )
        except _Ends as ends:
            return Played(case.id, "passed", number, str(ends))
        except EventUnsupported as unsupported:
            return Played(case.id, "skipped", number - 1, str(unsupported))
        except BadInput as error:
            raise BadInput(f"step {number}: {error}") from None
    return Played(case.id, "passed", len(case.steps))


@dataclass(slots=True)
class _Player:
    target: Target
    bound: Bound
    event: str = ""
    sent: list[ev.Event] = field(default_factory=list)

    def take(self, step: Step) -> None:
        """Play one step. Raises `_Ends` and `_Fails`, and what `play` does."""
        event = event_of(step, self.bound)
        self.event = ev.EVENT_NAMES[type(event)]
        if step.may_skip and self.target.lacks(event):
            return
        self.sent.append(event)
        answer = self._ask(event)
        rejected = isinstance(answer, ev.Rejection)
        if rejected != (step.refused is not UNSET):
            clause = LIVE_ANSWER.id if step.refused is UNSET else step.refused
            done = f"refused: {answer.reason}" if isinstance(answer, ev.Rejection) else "taken"
            raise _Fails(clause, "", done, "taken" if rejected else "refused")
        if not rejected:
            self._hold_all(step.allowed, answer)
        if self.target.profile.covers(Profile.ACCOUNTING):
            self.bound.shown = self._hold_all(step.books, self._ask(SNAPSHOT))
        for name in step.forget:
            self.bound.blocks.pop(name, None)

    def _ask(self, event: ev.Event) -> ev.Observation:
        try:
            return self.target.ask(event)
        except TargetFault as fault:
            raise _Fails(LIVE_ANSWER.id, "", str(fault), "an answer") from None

    def _hold_all(self, checks: tuple[Check, ...], answer: ev.Observation) -> dict[str, Any]:
        """Hold an answer to all checks, of which the first that fails decides; its plain values."""
        values: dict[str, Any] = msgspec.to_builtins(answer)
        for check in checks:
            try:
                hold(check, values, self.bound)
            except Parts:
                raise _Ends(f"{self.event}: {check.field} was chosen otherwise") from None
            except Differs as differs:
                if not self._covers(differs.clause):
                    told = f"{self.event}: soundness leaves {check.field} open ({differs.clause})"
                    raise _Ends(told) from None
                raise _Fails(
                    differs.clause, check.field, differs.observed, differs.allowed
                ) from None
        return values

    def _covers(self, clause: str) -> bool:
        if clause not in CLAUSES:
            raise BadInput(f"there is no clause {clause}")
        return self.target.profile.covers(CLAUSES[clause].profile)


def event_of(step: Step, bound: Bound) -> ev.Event:
    """The event of a step, its blocks by number. Raises `BadInput`."""
    form = step.event
    if isinstance(form, Evict):
        return ev.Evict(bound.value(form.blocks))
    kind = _KINDS[form.__struct_config__.tag]
    try:
        event: ev.Event = msgspec.convert(form, kind, from_attributes=True)
        return event
    except (msgspec.ValidationError, InvalidInput) as error:
        raise BadInput(str(error)) from None


def in_words(value: object) -> str:
    """A value as JSON, on one line."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
