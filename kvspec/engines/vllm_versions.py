"""In what versions of vLLM differ, as far as the adapter has to know."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kvspec.errors import TargetUnusable


@dataclass(frozen=True, slots=True)
class Version:
    """One minor version, by what it is like.

    `offloads` is the manager's method that drains hand-offs and pins them, or nothing where it
    hands off more than partial tails and leaves pinning to the connector. `skips_zeroing` says
    whether blocks that a load will write are named to `allocate_slots` (else to the scheduler);
    `lacks` what else it lacks, by the names of `kvspec.capabilities`; `adopts` whether a grant of
    nothing but a hit is an error of the scheduler alone.
    """

    minor: int
    offloads: str = ""
    skips_zeroing: bool = False
    lacks: tuple[str, ...] = ()
    adopts: bool = False


_OLD = Version(27, offloads="take_partial_tail_offloads")
_NEW = Version(29, skips_zeroing=True, lacks=("take_offloads",))

VERSIONS = {
    27: _OLD,
    28: replace(_OLD, minor=28),
    29: _NEW,
    30: replace(_NEW, minor=30),
    31: replace(_NEW, minor=31),
    32: replace(_NEW, minor=32),
    33: replace(_NEW, minor=33, lacks=("take_offloads", "partial_hits", "chunk"), adopts=True),
}
"""By the minor number: 28 is 0.28.x."""


def version_of(text: str) -> Version:
    """The version that calls itself so. Raises `TargetUnusable` for one that nobody has tried.

    >>> version_of("0.28.0").offloads
    'take_partial_tail_offloads'
    """
    major, _, rest = text.partition(".")
    minor = rest.partition(".")[0]
    if major == "0" and minor.isdigit() and int(minor) in VERSIONS:
        return VERSIONS[int(minor)]
    first, last = min(VERSIONS), max(VERSIONS)
    raise TargetUnusable(
        f"target vllm: version {text} is installed; the adapter knows 0.{first} to 0.{last}"
    )
