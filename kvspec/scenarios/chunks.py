"""The chunk rule: the table of design 4.10."""

from __future__ import annotations

from kvspec.spec import events as ev

from .play import Play, Scenario, cache, full, mamba


def _ends(
    play: Play,
    prompt: int,
    *,
    block: int,
    budget: int = 8192,
    cap: int = 0,
    fine: bool = False,
    start: int = 0,
) -> list[int]:
    """Where the chunks of a prompt end."""
    ends: list[int] = []
    while start < prompt and len(ends) < 20:
        wanted = min(prompt - start, budget, cap or prompt)
        asked = ev.Chunk(start, wanted, prompt, prompt, block, 32, budget, cap, fine)
        length = play.send(asked).num_tokens
        play.expect("a chunk advances", length > 0, True)
        start += length
        ends.append(start)
    return ends


def _sizes(ends: list[int]) -> list[int]:
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def s3(play: Play) -> None:
    """A long prompt, with fine mode on and off."""
    play.start(cache(full(2), mamba(4)))
    ends = _ends(play, 10000, block=512, fine=True)
    play.expect("chunk ends, fine", ends, [8192, 9728, 9984, 10000])
    play.expect("chunk ends", _ends(play, 10000, block=512), [8192, 9728, 10000])


def s4(play: Play) -> None:
    """A chunk that starts inside a block, then one that wants 1000 tokens."""
    play.start(cache(full(2), mamba(4)))
    for fine in (False, True):
        resumed = ev.Chunk(9984, 2016, 12000, 12000, 512, 32, 8192, fine=fine)
        play.expect("next block end", play.send(resumed).num_tokens, 10240 - 9984)
        onwards = ev.Chunk(10240, 1000, 12000, 12000, 512, 32, 8192, fine=fine)
        play.expect("aligned end", play.send(onwards).num_tokens, 10752 - 10240)


def s5(play: Play) -> None:
    """A block that no step has room for, by the budget and by the long-prefill cap."""
    play.start(cache(full(2), mamba(4)))
    ends = _ends(play, 30000, block=11392)
    play.expect("chunks", _sizes(ends), [8192, 3200, 8192, 3200, 7216])
    waits = ev.Chunk(0, 8192, 30000, 30000, 11392, 32, 11392)
    play.expect("waits for room", play.send(waits).num_tokens, 0)
    ends = _ends(play, 1300, block=512, cap=384)
    play.expect("chunks under a cap", _sizes(ends), [384, 128, 384, 128, 276])


SCENARIOS = [
    Scenario("S3", "chunk rule: a long prompt, fine mode on and off", s3),
    Scenario("S4", "chunk rule: resumed inside a block", s4),
    Scenario("S5", "chunk rule: a block that no step has room for", s5),
]
