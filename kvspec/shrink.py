"""Make a trace that breaks a clause as short and as plain as it gets.

A candidate is a trace with something taken out or made plainer. It is run on a fresh target, and
kept when the same clause breaks and the trace that got there is plainer than the best so far. An
event that may not be sent after what was taken out is fitted or left out too, so that taking out a
`submit` takes out all of its request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any

from kvspec.spec import events as ev
from kvspec.spec.admit import why_not
from kvspec.spec.case import Violation
from kvspec.spec.clauses import DATA_BYTES, DATA_KERNEL, Profile
from kvspec.spec.state import State
from kvspec.spec.types import Config, Connector, Group, GroupKind, InvalidInput, RequestId, Token

from .codec import trace_text
from .errors import ClauseBroken, TargetHung, TargetUnusable
from .memory import StoreKind
from .session import Session
from .targets import Factory

Events = tuple[ev.Event, ...]
StillFails = Callable[[Events], Events | None]
"""Runs a candidate: the events up to where it fails in the same way, or None."""

BUDGET = 150_000
"""What the candidates of one shrinking may cost in all: some 40 seconds at the most."""

# --- running a trace again ------------------------------------------------------------------------


def run_events(
    name: str,
    factory: Factory,
    profile: Profile | None,
    events: Events,
    *,
    store: StoreKind = StoreKind.AUTO,
) -> Session:
    """Run a trace on a fresh target, every event admissible or `InvalidInput`."""
    config, *rest = events
    if not isinstance(config, Config):
        raise InvalidInput("the first event of a trace must be configure")
    session = Session(name, factory, config, profile=profile, store=store)
    for event in rest:
        if not session.lacks(event):
            session.send(event)
    return session


def reproduces(
    name: str, factory: Factory, profile: Profile | None, events: Events
) -> Violation | None:
    """The clause that a trace breaks on a fresh target, if any."""
    try:
        run_events(name, factory, profile, events)
    except ClauseBroken as broken:
        return broken.violation
    return None


def breaks(
    clause: str,
    name: str,
    factory: Factory,
    profile: Profile | None,
    *,
    store: StoreKind = StoreKind.AUTO,
) -> StillFails:
    """A test of candidates: whether they break this clause on this target."""

    def still_fails(events: Events) -> Events | None:
        try:
            config, *rest = events
            assert isinstance(config, Config)
            of_bytes = clause in (DATA_BYTES.id, DATA_KERNEL.id)
            session = Session(
                name, factory, config, profile=profile, moves_bytes=of_bytes, store=store
            )
            for event in rest:
                fitted = fit(session.state, event)
                if fitted is not None and not session.lacks(fitted):
                    session.send(fitted)
        except ClauseBroken as broken:
            return broken.events if broken.violation.clause.id == clause else None
        except (InvalidInput, TargetUnusable):
            return None
        return None

    return still_fails


def fit(state: State, event: ev.Event) -> ev.Event | None:
    """The event, or the nearest to it that may be sent now, or None."""
    if why_not(state, event) is None:
        return event
    if isinstance(event, ev.Allocate) and event.request in state.requests:
        request, last = state.requests[event.request], state.last_lookup
        hit = last.num_tokens if last and last.request == event.request else 0
        start = request.computed if request.tables else hit + event.num_external_tokens
        event = replace(event, num_new_tokens=max(len(request.prefix) - start, 0))
    elif isinstance(event, ev.ReleaseRetained):
        event = replace(event, fence=state.dispatched)
    elif isinstance(event, ev.Evict):
        event = ev.Evict(tuple(b for b in event.blocks if b < state.config.num_blocks))
    return event if why_not(state, event) is None else None


# --- the search -----------------------------------------------------------------------------------


def shrink(events: Events, still_fails: StillFails, budget: int = BUDGET) -> Events:
    """The plainest trace found that still fails; the same every time."""
    try:
        best = still_fails(events)
    except TargetHung:
        return events
    if best is None:
        return events
    search = _Search(best, still_fails, budget)
    try:
        while search.improve():
            pass
        search.consider(_renamed(search.best))
    except TargetHung:
        pass  # what was found until then is as good
    return search.best


class _Search:
    """The best trace so far, and what is left of the budget."""

    def __init__(self, events: Events, still_fails: StillFails, budget: int) -> None:
        self.best = events
        self.still_fails = still_fails
        self.left = budget
        self.tried: set[bytes] = set()

    def improve(self) -> bool:
        """Go through all ways to make the trace plainer; whether one did."""
        before = self.best
        for keep in (1, 2):
            self.consider(_scaled(self.best, keep))
        self.take_any(_simpler_together)
        self.take_any(_simpler_configs)
        self.remove_kinds()
        self.remove_requests()
        self.remove_runs()
        self.take_any(_simpler_events)
        if self.best == before:
            self.take_any(_smaller_worlds)
        return self.best != before and self.left > 0

    def consider(self, candidate: Events) -> bool:
        """Keep a candidate if it fails and is plainer."""
        text = hashlib.sha256(trace_text(candidate).encode()).digest()
        if self.left <= 0 or text in self.tried:
            return False
        self.tried.add(text)
        self.left -= _cost(candidate)
        found = self.still_fails(candidate)
        if found is None or _weight(found) >= _weight(self.best):
            return False
        self.best = found
        return True

    def remove_kinds(self) -> None:
        """Take out all events of a kind."""
        for kind in dict.fromkeys(map(type, self.best[1:])):
            self.consider(tuple(e for e in self.best if type(e) is not kind))

    def remove_requests(self) -> None:
        """Take out whole requests, from half of them down to one, the last ones first."""
        size = max(len(_names(self.best)) // 2, 1)
        while size:
            at = len(_names(self.best))
            while at > 0:
                gone = _names(self.best)[max(at - size, 0) : at]
                self.consider(
                    tuple(e for e in self.best if getattr(e, "request", None) not in gone)
                )
                at -= size
            size //= 2

    def remove_runs(self) -> None:
        """Take out runs of events, from half of them down to one, the last ones first."""
        size = len(self.best) // 2
        while size:
            at = len(self.best) - size
            while at > 0:
                self.consider(self.best[:at] + self.best[at + size :])
                at = min(at, len(self.best)) - max(size // 2, 1)
            size //= 2

    def take_any(self, simpler: Callable[[Events], Iterator[Events]]) -> None:
        """Take simpler candidates, starting over after each that was kept, until none is."""
        while any(self.consider(candidate) for candidate in simpler(self.best)):
            pass


def _weight(events: Events) -> tuple[int, int, str]:
    """What is plainer: fewer events, then a shorter text, then smaller digits in it."""
    text = trace_text(events)
    return len(events), len(text), text


def _cost(events: Events) -> int:
    """What it takes to run a trace: one for an event on a small pool, less for a token."""
    config = events[0]
    assert isinstance(config, Config)
    tokens = sum(len(e.tokens) for e in events if isinstance(e, ev.Submit))
    return len(events) * (1 + config.num_blocks // 100) + tokens // 100


def _names(events: Events) -> list[RequestId]:
    return list(dict.fromkeys(e.request for e in events if hasattr(e, "request")))


def _renamed(events: Events) -> Events:
    """The same trace with its requests named a, b, c and so on."""
    names = {old: RequestId(_letters(n)) for n, old in enumerate(_names(events))}
    anything: tuple[Any, ...] = events
    return tuple(
        replace(e, request=names[e.request]) if hasattr(e, "request") else e for e in anything
    )


def _letters(number: int) -> str:
    letter = chr(ord("a") + number % 26)
    return _letters(number // 26 - 1) + letter if number >= 26 else letter


# --- candidates -----------------------------------------------------------------------------------


def _simpler_configs(events: Events) -> Iterator[Events]:
    config = events[0]
    assert isinstance(config, Config)
    for simpler in _configs(config, events):
        if simpler != config:
            yield (simpler, *events[1:])


def _configs(config: Config, events: Events) -> Iterator[Config]:
    for blocks in (*range(2, 12), config.num_blocks // 2, config.num_blocks - 1):
        if 2 <= blocks < config.num_blocks:
            yield replace(config, num_blocks=blocks)
    groups = config.groups
    for g, group in enumerate(groups):
        rest = (*groups[:g], *groups[g + 1 :])
        if not all(other.recurrent for other in rest):
            yield replace(config, groups=rest)
        for other in _groups(config, group):
            yield replace(config, groups=(*groups[:g], other, *groups[g + 1 :]))
    yield replace(config, connector=Connector.NONE)
    yield replace(config, deferral=False)
    yield replace(config, max_in_flight=1)
    longest = _longest_prompt(events)
    for length in (longest, longest + 1, longest + 2):
        yield replace(config, max_model_len=min(length, config.max_model_len))


def _groups(config: Config, group: Group) -> Iterator[Group]:
    yield replace(group, eagle=False)
    yield replace(group, zeroed=False)
    for size in range(config.hash_unit, group.block_size, config.hash_unit):
        yield replace(group, block_size=size)


def _scaled(events: Events, keep: int) -> Events:
    """The same with a hash unit of `keep` tokens, 1 or 2; what prompts share is still shared.

    With 2 the tail of an incomplete unit stays one.
    """
    config = events[0]
    assert isinstance(config, Config)
    unit = config.hash_unit
    if unit <= keep:
        return events

    def length(tokens: int) -> int:
        return tokens // unit * keep + min(tokens % unit, 1)

    def few(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        starts = range(0, len(tokens), unit)
        return tuple(t for at in starts for t in tokens[at : at + unit][:keep])[
            : length(len(tokens))
        ]

    groups = tuple(replace(g, block_size=length(g.block_size)) for g in config.groups)
    longest = length(config.max_model_len)
    scaled: list[ev.Event] = [replace(config, hash_unit=keep, groups=groups, max_model_len=longest)]
    for event in events[1:]:
        match event:
            case ev.Submit(tokens=tokens):
                event = replace(event, tokens=few(tokens), media=())
            case ev.Append(tokens=tokens):
                event = replace(event, tokens=few(tokens))
            case ev.Truncate(num_tokens=end):
                event = replace(event, num_tokens=length(end))
            case ev.Allocate(num_new_tokens=new, num_external_tokens=external):
                new, external = length(new), length(external)
                event = replace(event, num_new_tokens=new, num_external_tokens=external)
        scaled.append(event)
    return tuple(scaled)


def _simpler_together(events: Events) -> Iterator[Events]:
    """All prompts cut or blanked at once, since a shared prefix matters only while shared."""
    longest = _longest_prompt(events)
    yield tuple(_blank(event) for event in events)
    for length in (*range(1, min(longest, 16)), *_less(longest)):
        if length > 0:
            yield tuple(_cut(event, length) for event in events)


def _smaller_worlds(events: Events) -> Iterator[Events]:
    """A smaller pool along with less to fill it: neither would fail without the other."""
    config = events[0]
    assert isinstance(config, Config)
    ones = tuple(replace(group, block_size=1) for group in config.groups)
    longest = _longest_prompt(events)
    alone = [replace(config, groups=(g,)) for g in config.groups if not g.recurrent]
    for world in dict.fromkeys((replace(config, hash_unit=1, groups=ones), *alone, config)):
        for blocks in range(2, min(config.num_blocks, 17)):
            for length in (*range(1, min(longest, 9)), longest):
                small = replace(world, num_blocks=blocks)
                cut = [_cut(event, length) for event in events[1:]]
                yield (small, *cut)
                for name in _names(events):
                    yield (small, *(e for e in cut if getattr(e, "request", None) != name))
                    yield (small, *_ended_early(cut, name))
    pair = replace(ones[0], block_size=2)
    for name in _names(events):
        for blocks in range(2, min(config.num_blocks, 9)):
            small = Config(blocks, 2, (replace(pair, kind=GroupKind.FULL),), 2)
            yield (small, *_ended_early(_one_block(events[1:], name), name))


def _one_block(events: Sequence[ev.Event], name: RequestId) -> Iterator[ev.Event]:
    """One request fills a block of two tokens, the others only begin one of their own."""
    for event in events:
        if isinstance(event, ev.Submit):
            tokens = (Token(0), Token(0)) if event.request == name else (Token(0),)
            yield replace(event, tokens=tokens, media=())
        elif isinstance(event, ev.Allocate):
            yield replace(event, num_new_tokens=2, num_external_tokens=0)
        else:
            yield event


def _ended_early(events: Iterable[ev.Event], name: RequestId) -> Iterator[ev.Event]:
    """A request that is done after its first step, whatever else became of it."""
    granted = done = False
    for event in events:
        if getattr(event, "request", None) != name:
            yield event
        elif not done:
            yield event
            granted |= isinstance(event, ev.Allocate)
        if granted and not done and isinstance(event, ev.Process):
            done = True
            yield ev.Finish(name)


def _longest_prompt(events: Events) -> int:
    return max([1, *(len(e.tokens) for e in events if isinstance(e, ev.Submit))])


def _cut(event: ev.Event, length: int) -> ev.Event:
    if isinstance(event, ev.Submit):
        return replace(event, tokens=event.tokens[:length])
    if isinstance(event, ev.Allocate):
        return replace(event, num_new_tokens=min(event.num_new_tokens, length))
    return event


def _blank(event: ev.Event) -> ev.Event:
    if isinstance(event, ev.Submit | ev.Append):
        return replace(event, tokens=(Token(0),) * len(event.tokens))
    return event


def _simpler_events(events: Events) -> Iterator[Events]:
    for at in range(len(events) - 1, 0, -1):
        event: Any = events[at]
        for field in fields(event):
            value = getattr(event, field.name)
            default = () if field.default is MISSING else (field.default,)
            for simpler in (*default, *_values(value)):
                if simpler != value:
                    changed = replace(event, **{field.name: simpler})
                    yield (*events[:at], changed, *events[at + 1 :])


def _less(size: int) -> tuple[int, ...]:
    """Smaller sizes; by steps of one only where the size is small, since each takes a run."""
    return (size // 2, size * 3 // 4, size - 1) if size <= 32 else (size // 2, size * 7 // 8)


def _values(value: Any) -> Iterator[Any]:
    """Plainer values than this one."""
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield from (n for n in (0, 1, *_less(value)) if 0 <= n < value)
    elif isinstance(value, tuple):
        yield from (value[:n] for n in _less(len(value)))
        if len(value) <= 32:
            yield value[1:]
        if value and isinstance(value[0], int):
            yield (0,) * len(value)
            short = range(min(len(value), 16))
            yield from ((*value[:i], 0, *value[i + 1 :]) for i in short if value[i])
