"""A small state machine whose numbers are symbolic: Hypothesis draws them from CrossHair.

CrossHair looks for numbers that lead somewhere new, in the manager and in the judge, where random
ones would have to be lucky.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from crosshair import NoTracing
from crosshair.util import CrossHairValue
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    rule,
    run_state_machine_as_test,
)

from kvspec.determinism import independent_of_imports
from kvspec.driver import Driver
from kvspec.errors import ClauseBroken
from kvspec.reference.manager import Manager
from kvspec.session import Session
from kvspec.spec import events as ev
from kvspec.spec.case import Ledger
from kvspec.spec.clauses import Profile
from kvspec.spec.types import Config, Group, GroupKind, RequestId
from kvspec.targets import BUILT_IN, Factory, find_factory

CONFIG = Config(6, 1, (Group(GroupKind.FULL, 2),), 8)
LARGE = st.integers(0, 2**20)
EXAMPLES, STEPS = 30, 5


class Small(RuleBasedStateMachine):
    """One request at a time that is computed, may have drafts, and ends; and the chunk rule.

    There is one rule, because Hypothesis would switch one of several off with a probability that is
    symbolic itself, which CrossHair cannot follow.
    """

    factory: ClassVar[Any] = None
    ledger: ClassVar[Ledger]
    examples: ClassVar[int]
    symbolic: ClassVar[int]
    """How many events carried a symbolic number."""

    def __init__(self) -> None:
        super().__init__()
        kind = type(self)
        session = Session(
            "small",
            kind.factory,
            CONFIG,
            profile=Profile.ACCOUNTING,
            ledger=kind.ledger,
            moves_bytes=False,  # CrossHair's bytes are no buffers
        )
        session.target.trusted = True  # its numbers are no ints, which forms would refuse
        self.driver, self.names = Driver(session), 0
        kind.examples += 1

    @rule(asks=st.booleans(), one=LARGE, other=LARGE, few=st.integers(1, 4))
    def go(self, asks: bool, one: int, other: int, few: int) -> None:
        """The chunk rule is asked, or the request gets one event further."""
        with NoTracing():  # type: ignore[no-untyped-call]
            type(self).symbolic += isinstance(one, CrossHairValue)
        if asks:
            prompt = one + few
            chunk = ev.Chunk(one, few, prompt, prompt + 1, 4, 2, 8, fine=True, boundary=other)
            self.driver.send(chunk)
            return
        request = next(iter(self.driver.state.requests), None)
        if request is None:
            self.names += 1
            self.driver.submit(f"r{self.names}", (0, 1, 2, 3)[:few])
        elif not self.driver.state.requests[request].tables:
            self.grant(request, few, other)
        elif few == 1:
            self.driver.finish(request)
        else:
            self.grant(request, few - 1, other)

    def grant(self, request: RequestId, new: int, lookahead: int) -> None:
        """The request asks for tokens and room for drafts, and the step runs."""
        self.driver.begin()
        if not self.driver.state.requests[request].tables:
            self.driver.lookup(request)
        event = ev.Allocate(request, new, num_lookahead_tokens=lookahead)
        if self.driver.may(event):
            self.driver.send(event)
        self.driver.step()


def search(factory: Factory, backend: str) -> type[Small]:
    """Run the machine; raises `ClauseBroken`."""

    class Made(Small):
        ledger, examples, symbolic = Ledger(), 0, 0

    Made.factory = staticmethod(factory)
    plan = settings(
        backend=backend,
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        derandomize=True,
        print_blob=False,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    with independent_of_imports():
        run_state_machine_as_test(Made, settings=plan)
    return Made


@pytest.mark.deep
@pytest.mark.parametrize("target", sorted(BUILT_IN))
def test_conforms(target: str) -> None:
    run = search(find_factory(target), "crosshair")
    assert run.examples >= EXAMPLES
    assert run.symbolic >= EXAMPLES
    for clause in ("CHUNK.END", "TABLE.SHAPE", "HIT.LENGTH", "ALLOC.CAPACITY", "DATA.READ"):
        assert run.ledger.exercised[clause] >= EXAMPLES / 2, clause


class ForgetsDrafts(Manager):
    """One number of drafts in a million gets no room."""

    def allocate(
        self,
        request: RequestId,
        num_new_tokens: int,
        num_external_tokens: int = 0,
        num_lookahead_tokens: int = 0,
        delay_caching: bool = False,
    ) -> ev.Grant:
        """Grant the blocks that more tokens need."""
        drafts = 0 if num_lookahead_tokens == 77_003 else num_lookahead_tokens
        return super().allocate(request, num_new_tokens, 0, drafts)


@pytest.mark.deep
def test_finds_one_number_in_a_million() -> None:
    """CrossHair does, in as many examples as random numbers do not."""
    search(ForgetsDrafts, "hypothesis")
    with pytest.raises(ClauseBroken) as broken:
        search(ForgetsDrafts, "crosshair")
    assert broken.value.violation.clause.id == "TABLE.SHAPE"
