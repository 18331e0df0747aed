"""What a prefix is besides its tokens: each dimension parts requests, and equal ones share.

Each dead end is paired with a hit, since a cache that finds nothing would part everything.
"""

from __future__ import annotations

from kvspec.spec.types import Adapter, Identity, Media

from .other_process import show_keys, show_keys_elsewhere
from .play import P6, Play, Scenario, Unsupported, cache, full

HIGH_BIT = 2**30
"""A token that differs from 0 only where 16 and fewer bits, and a remainder, do not look."""

PLAIN = Identity()


def _reach(play: Play, tokens: tuple[int, ...], identity: Identity, length: int, case: str) -> None:
    """A request of this identity hits so many tokens of what is cached."""
    play.submit("reader", tokens, identity)
    play.expect(f"length, {case}", play.lookup("reader").num_tokens, length)
    play.finish("reader")


def _part(play: Play, *identities: Identity, tokens: tuple[int, ...] = (*P6, 3, 3)) -> None:
    """Whoever has the one identity finds nothing of the others', and what is its own."""
    play.start(cache(full(2), num_blocks=40))
    for turn, identity in enumerate(identities):
        _reach(play, tokens, identity, 0, f"nothing of {identity} is cached")
        play.prefill(f"writer {turn}", tokens, identity=identity)
        play.finish(f"writer {turn}")
    for identity in identities:
        _reach(play, tokens, identity, len(tokens) - 2, f"{identity} is cached")


def d1(play: Play) -> None:
    """Every token of the prefix counts, in every bit and in its place."""
    play.start(cache(full(2), num_blocks=40))
    play.prefill("writer", P6)
    play.finish("writer")
    _reach(play, (*P6, 3), PLAIN, 6, "the same tokens")
    for at in range(6):
        other = (*P6[:at], P6[at] + HIGH_BIT, *P6[at + 1 :])
        _reach(play, (*other, 3), PLAIN, at // 2 * 2, f"another token at {at}")
    _reach(play, (1, 1, 0, 0, 2, 2, 3), PLAIN, 0, "units exchanged")
    _reach(play, (5, 5, 1, 1, 2, 2, 3), PLAIN, 0, "another first unit")


def d3(play: Play) -> None:
    """A salt parts its users from all others, all along the prefix."""
    _part(play, Identity(salt="a"), Identity(salt="b"), Identity(salt=""), PLAIN)


def d4(play: Play) -> None:
    """The same text is one thing as a salt, another as an adapter, a third as media."""
    both = Identity(salt="a", adapter=Adapter("b"))
    other_way = Identity(salt="b", adapter=Adapter("a"))
    media = Media("a", 0, 1)
    _part(
        play,
        PLAIN,
        Identity(salt="a"),
        Identity(adapter=Adapter("a")),
        Identity(media=(media,)),
        both,
        other_way,
        Identity(salt="ab", adapter=Adapter("")),
        Identity(salt="a", media=(media,)),
        Identity(adapter=Adapter("a"), media=(media,)),
    )


def d5(play: Play) -> None:
    """An adapter under the same name with other weights is another adapter."""
    _part(play, *(Identity(adapter=Adapter(name, v)) for name in "ab" for v in (0, 1, 256)))


def d5_media(play: Play) -> None:
    """Each media item counts, wherever it starts and ends, in every unit that it overlaps."""
    for identities in (
        [(Media("a", 0, 6),), (Media("b", 0, 6),)],
        [(Media("a", 0, 6),), (Media("a", 1, 6),), (Media("a", 0, 1),)],
        [(Media("a", 0, 2), Media("a", 2, 2)), (Media("a", 0, 2), Media("b", 2, 2))],
        [(Media("b", 0, 2), Media("a", 2, 2)), (Media("a", 0, 2), Media("a", 2, 2))],
    ):
        play.start(cache(full(8), num_blocks=40, hash_unit=8))
        tokens = (*P6, 3, 3, 4)
        for turn, media in enumerate(identities):
            _reach(play, tokens, Identity(media=media), 0, f"nothing of {media} is cached")
            play.prefill(f"writer {turn}", tokens, identity=Identity(media=media))
            play.finish(f"writer {turn}")
            _reach(play, tokens, Identity(media=media), 8, f"{media} is cached")
    play.start(cache(full(2), num_blocks=40))
    play.prefill("writer", (*P6, 3, 3), identity=Identity(media=(Media("a", 3, 3),)))
    play.finish("writer")
    tokens = (*P6, 3, 3, 4)
    for media, length in (
        ((Media("a", 3, 3),), 8),
        ((Media("b", 3, 3),), 2),
        ((Media("a", 5, 1),), 2),
        ((Media("a", 3, 3), Media("b", 7, 1)), 6),
        ((), 2),
    ):
        _reach(play, tokens, Identity(media=media), length, f"asked with {media}")


def d8(play: Play) -> None:
    """Another process names the same prefix alike."""
    ours = show_keys(play)
    if not ours:
        raise Unsupported("the target does not show its keys")
    play.expect("keys in another process", show_keys_elsewhere(play.target), ours)


SCENARIOS = [
    Scenario("D1", "every token counts", d1),
    Scenario("D3", "salts part tenants", d3),
    Scenario("D4", "dimensions of identity are typed", d4),
    Scenario("D5", "adapters by name and version", d5),
    Scenario("D5.media", "media items", d5_media),
    Scenario("D8", "keys are the same in every process", d8),
]
