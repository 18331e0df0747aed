"""What a target may or may not be able to do, and what of it a run made use of.

A capability is an event of the language, a feature (a use of an event or of the configuration that
an engine may not know, such as a salt or a recurrent group) or a book that a snapshot shows. A
target says which it lacks; what it lacks is never sent to it, and reports name it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from kvspec.spec import events as ev
from kvspec.spec.case import Ledger
from kvspec.spec.types import Config, Connector

Uses = Callable[[ev.Event], bool]

ESSENTIAL = ("submit", "begin_step", "allocate", "end_step", "execute", "process", "finish")
"""Events without which nothing can be judged: a target cannot lack them."""

CONFIG_FEATURES: dict[str, Callable[[Config], bool]] = {
    "recurrent_groups": lambda c: any(g.recurrent for g in c.groups),
    "several_groups": lambda c: len(c.groups) > 1,
    "unequal_blocks": lambda c: len({g.block_size for g in c.groups}) > 1,
    "partial_hits": lambda c: c.fine,
    "eagle": lambda c: any(g.eagle for g in c.groups),
    "zeroed": lambda c: any(g.zeroed for g in c.groups),
    "no_caching": lambda c: not c.caching,
    "uniform_connector": lambda c: c.connector is Connector.UNIFORM,
    "diverging_connector": lambda c: c.connector is Connector.DIVERGING,
    "deferral": lambda c: c.deferral,
    "several_in_flight": lambda c: c.max_in_flight > 1,
}
"""Features of a configuration: a target that lacks one is not given such a configuration."""

EVENT_FEATURES: dict[str, tuple[type[ev.Event], Callable[..., bool]]] = {
    "salt": (ev.Submit, lambda e: e.salt is not None),
    "adapter": (ev.Submit, lambda e: e.adapter is not None),
    "media": (ev.Submit, lambda e: bool(e.media)),
    "external_tokens": (ev.Allocate, lambda e: e.num_external_tokens > 0),
    "lookahead_tokens": (ev.Allocate, lambda e: e.num_lookahead_tokens > 0),
    "delay_caching": (ev.Allocate, lambda e: e.delay_caching),
}
"""Features of an event: a target that lacks one is not sent such an event."""

FEATURES = (*CONFIG_FEATURES, *EVENT_FEATURES)
EVENTS = tuple(ev.EVENT_NAMES.values())
LACKABLE = (*(name for name in EVENTS if name not in ("configure", *ESSENTIAL)), *FEATURES)
"""Everything that a target may say it lacks."""

CAPABILITIES = (
    *(f"event {name}" for name in EVENTS),
    *(f"feature {name}" for name in FEATURES),
    *(f"book {name}" for name in ev.SHOWABLE),
)
"""Everything that this kit can make use of, by the names that reports print."""

_BY_KIND: dict[type[ev.Event], list[tuple[str, Callable[..., bool]]]] = {
    kind: [(name, uses) for name, (k, uses) in EVENT_FEATURES.items() if k is kind]
    for kind in (ev.Submit, ev.Allocate)
}


def features(event: ev.Event) -> list[str]:
    """The features that an event, or a configuration, makes use of."""
    if isinstance(event, Config):
        return [name for name, uses in CONFIG_FEATURES.items() if uses(event)]
    return [name for name, uses in _BY_KIND.get(type(event), ()) if uses(event)]


def fitted(config: Config, lacks: Iterable[str]) -> Config:
    """The configuration, without the features that a target lacks.

    >>> groups = (Group(GroupKind.FULL, 4), Group(GroupKind.MAMBA_ALIGN, 8))
    >>> fitted(Config(9, 2, groups, 16, deferral=True), ("recurrent_groups", "deferral")).groups
    (Group(kind=<GroupKind.FULL: 'full'>, block_size=4, eagle=False, zeroed=False),)
    """
    missing, groups, unit = set(lacks), config.groups, config.hash_unit
    if "recurrent_groups" in missing:
        groups = tuple(g for g in groups if not g.recurrent)
    if "several_groups" in missing:
        groups = tuple(g for g in groups if not g.recurrent)[:1]
    if "partial_hits" in missing:
        groups = tuple(replace(g, block_size=unit) if g.recurrent else g for g in groups)
    if "unequal_blocks" in missing:
        size = min(g.block_size for g in groups)
        groups = tuple(replace(g, block_size=size) for g in groups)
    if "eagle" in missing:
        groups = tuple(replace(g, eagle=False) for g in groups)
    if "zeroed" in missing:
        groups = tuple(replace(g, zeroed=False) for g in groups)
    lacked = f"{config.connector.value}_connector" in missing
    return replace(
        config,
        groups=groups,
        caching=config.caching or "no_caching" in missing,
        connector=Connector.NONE if lacked else config.connector,
        deferral=config.deferral and "deferral" not in missing,
        max_in_flight=1 if "several_in_flight" in missing else config.max_in_flight,
    )


def plainer(event: ev.Allocate, lacks: Iterable[str]) -> ev.Allocate:
    """The same grant asked for without the features that a target lacks, as far as it can be."""
    missing = set(lacks)
    if not missing:
        return event
    return replace(
        event,
        num_lookahead_tokens=0 if "lookahead_tokens" in missing else event.num_lookahead_tokens,
        delay_caching=event.delay_caching and "delay_caching" not in missing,
    )


def lacking(event: ev.Event, lacks: Iterable[str]) -> str:
    """The name of a capability that the event needs and the target lacks, or nothing.

    >>> lacking(ev.Reset(), ("reset", "salt"))
    'reset'
    >>> lacking(ev.Allocate("r", 1, num_lookahead_tokens=2), ("lookahead_tokens",))
    'lookahead_tokens'
    """
    missing = set(lacks)
    if not missing:
        return ""
    name = ev.EVENT_NAMES[type(event)]
    return next((found for found in (name, *features(event)) if found in missing), "")


@dataclass(slots=True)
class Tally(Ledger):
    """A ledger that also counts the capabilities used, and why others were not.

    `used` by name; `missed` says, for a capability that a target was spared, the reason it gave.
    """

    used: Counter[str] = field(default_factory=Counter)
    missed: dict[str, str] = field(default_factory=dict)

    def add_tally(self, other: Tally) -> None:
        """Add what another counted; the first reason given for a capability stays."""
        self.add(other)
        self.used.update(other.used)
        self.missed = {**other.missed, **self.missed}

    def configured(self, config: Config, capabilities: ev.Capabilities) -> None:
        """Note that a cache was configured, and the books that it shows."""
        self.count(config)
        for book in capabilities.shows:
            self.used[f"book {book}"] += 1

    def count(self, event: ev.Event) -> None:
        """Note that an event was taken."""
        self.used[f"event {ev.EVENT_NAMES[type(event)]}"] += 1
        for name in features(event):
            self.used[f"feature {name}"] += 1

    def miss(self, event: ev.Event, reason: str, lacked: str = "") -> None:
        """Note that an event was not sent or not taken; `lacked` names what it needed."""
        names = [lacked] if lacked else [*features(event), ev.EVENT_NAMES[type(event)]]
        for name in names:
            kind = "feature" if name in FEATURES else "event"
            self.missed.setdefault(f"{kind} {name}", reason)


@dataclass(frozen=True, slots=True)
class Coverage:
    """One capability of the kit: how often a run used it, or the reason why it did not."""

    id: str
    used: int
    reason: str = ""


def coverage(tally: Tally, capabilities: ev.Capabilities | None) -> tuple[Coverage, ...]:
    """All capabilities; one that was neither used nor is explained has an empty reason."""
    return tuple(
        Coverage(
            name, tally.used[name], "" if tally.used[name] else _why(name, tally, capabilities)
        )
        for name in CAPABILITIES
    )


def _why(name: str, tally: Tally, capabilities: ev.Capabilities | None) -> str:
    kind, _, what = name.partition(" ")
    if capabilities is None:
        return "the target was not configured"
    if what in capabilities.lacks:
        return "the target lacks it"
    if kind == "book" and what not in capabilities.shows:
        return "the target does not show it"
    if name == "event snapshot" and not capabilities.shows:
        return "the target shows no books"
    needed = _NEEDS.get(name, ())
    if needed and all(
        f"feature {other}" in CAPABILITIES and other in capabilities.lacks for other in needed
    ):
        return f"the target lacks {' and '.join(needed)}"
    return tally.missed.get(name, "")


_CONNECTORS = ("uniform_connector", "diverging_connector")
_NEEDS = {
    "feature external_tokens": _CONNECTORS,
    "event load_external": _CONNECTORS,
    "event take_offloads": _CONNECTORS,
    "event offload_read": _CONNECTORS,
    "event offload_done": _CONNECTORS,
    "feature unequal_blocks": ("several_groups",),
    "feature partial_hits": ("recurrent_groups",),
}
"""Capabilities that come to nothing where the target lacks all of others."""
