"""In what versions of vLLM differ, as far as the adapter has to know."""

from __future__ import annotations

from dataclasses import dataclass

from kvspec.errors import TargetUnusable


@dataclass(frozen=True, slots=True)
class Version:
    """One minor version, by what it is like.

    `skips_zeroing` says whether blocks that a load will write are named to `allocate_slots` (else
    to the scheduler); `lacks` what it lacks, by the names of `kvspec.capabilities`; `adopts`
    whether a grant of nothing but a hit is an error of the scheduler alone.
    """

    minor: int
    skips_zeroing: bool = False
    lacks: tuple[str, ...] = ()
    adopts: bool = False


_OFFLOADS = ("take_offloads",)
"""Lacked where more is handed off than partial tails, and pinned by the connector alone."""

VERSIONS = {
    version.minor: version
    for version in (
        Version(27),
        Version(28),
        *(Version(minor, skips_zeroing=True, lacks=_OFFLOADS) for minor in range(29, 33)),
        Version(33, skips_zeroing=True, lacks=(*_OFFLOADS, "partial_hits", "chunk"), adopts=True),
    )
}
"""By the minor number: 28 is 0.28.x."""


def version_of(text: str) -> Version:
    """The version that calls itself so. Raises `TargetUnusable` for one that nobody has tried.

    >>> version_of("0.28.0").lacks, version_of("0.30.1").lacks
    ((), ('take_offloads',))
    """
    major, _, rest = text.partition(".")
    minor = rest.partition(".")[0]
    if major == "0" and minor.isdigit() and int(minor) in VERSIONS:
        return VERSIONS[int(minor)]
    first, last = min(VERSIONS), max(VERSIONS)
    raise TargetUnusable(
        f"target vllm: version {text} is installed; the adapter knows 0.{first} to 0.{last}"
    )
