"""The event language (design section 3): everything that happens to a cache, and the answers.

An event is a frozen dataclass; its wire name is the class name in snake case. `ANSWERS` says which
observation each event is answered with. A target answers an event that the rules call an error
(design 4.9, a grant of nothing) by raising `Rejected`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .types import Adapter, BlockId, Config, GroupId, Media, RequestId, Step, Table, Tables, Token

# --- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Submit:
    """A request arrives with its prompt."""

    request: RequestId
    tokens: tuple[Token, ...]
    salt: str | None = None
    adapter: Adapter | None = None
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True)
class BeginStep:
    """A scheduling pass begins."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Ask for the joint hit of a request that holds no blocks."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class LookupForConnector:
    """Ask for the hit on behalf of a connector that may extend it."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Truncate:
    """View the last lookup's result at `num_tokens`."""

    request: RequestId
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Allocate:
    """Ask for the blocks that `num_new_tokens` more tokens need."""

    request: RequestId
    num_new_tokens: int
    num_external_tokens: int = 0
    num_lookahead_tokens: int = 0
    delay_caching: bool = False


@dataclass(frozen=True, slots=True)
class TakeZeroing:
    """Drain the list of blocks to zero in this step."""


@dataclass(frozen=True, slots=True)
class TakeCopies:
    """Drain the queue of copies of this step."""


@dataclass(frozen=True, slots=True)
class TakeOffloads:
    """Drain the hand-offs to the connector; each drained block is pinned."""


@dataclass(frozen=True, slots=True)
class EndStep:
    """The pass ends; what was granted is dispatched."""


@dataclass(frozen=True, slots=True)
class Execute:
    """The oldest dispatched step runs on the worker."""


@dataclass(frozen=True, slots=True)
class Process:
    """The output of the oldest executed step reaches the scheduler."""


@dataclass(frozen=True, slots=True)
class ReleaseRetained:
    """Release the endpoints of drained copies whose step is not after `fence`."""

    fence: Step


@dataclass(frozen=True, slots=True)
class Append:
    """Sampled tokens are added to a request."""

    request: RequestId
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Preempt a request whose chunk of this step has not been dispatched: it will never run."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Preempt:
    """Take a request's blocks back; it waits again."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Finish:
    """A request is done."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Abort:
    """A request is given up by its client."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Detach:
    """Take a request's blocks off it without freeing them; it waits again."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class FreeDetached:
    """Free what was detached from a request."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class OffloadRead:
    """The connector reads what it was handed."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class OffloadDone:
    """The connector has read what it was handed and will not read it again."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class LoadExternal:
    """A request's external tokens arrive, or fail to."""

    request: RequestId
    ok: bool


@dataclass(frozen=True, slots=True)
class Evict:
    """Drop the keys of blocks."""

    blocks: tuple[BlockId, ...]


@dataclass(frozen=True, slots=True)
class Reset:
    """Drop every key, if nothing is held."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Ask how many tokens a prefill chunk may compute: pure arithmetic (design 4.10).

    Added to the event language so that a target's chunk rule is judged like everything else.
    `wanted` is what is left to compute, capped by what is left of the step's budget and by `cap`;
    `budget` is the whole step's. All in tokens; 0 for `cap` or `boundary` means none.
    """

    start: int
    wanted: int
    num_prompt_tokens: int
    num_tokens: int
    block_size: int
    hash_unit: int
    budget: int
    cap: int = 0
    fine: bool = False
    eagle: bool = False
    boundary: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Ask for whatever of its books the target shows."""


Event = (
    Config
    | Submit
    | BeginStep
    | Lookup
    | LookupForConnector
    | Truncate
    | Allocate
    | TakeZeroing
    | TakeCopies
    | TakeOffloads
    | EndStep
    | Execute
    | Process
    | ReleaseRetained
    | Append
    | Withdraw
    | Preempt
    | Finish
    | Abort
    | Detach
    | FreeDetached
    | OffloadRead
    | OffloadDone
    | LoadExternal
    | Evict
    | Reset
    | Chunk
    | Snapshot
)

# --- observations -----------------------------------------------------------------------------

SHOWABLE = ("refcounts", "free_list", "keys", "pins", "tables")
"""The books that a snapshot can show."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a target says of itself when configured.

    `shows` names the books a snapshot shows, out of `SHOWABLE`; `lacks` the events it cannot take.
    """

    name: str
    version: str = ""
    shows: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """The event was taken; there is nothing to say."""


@dataclass(frozen=True, slots=True)
class Hit:
    """Blocks per group, and how many tokens they serve."""

    blocks: Tables
    num_tokens: int
    shared_prefix_boundary: int = 0


@dataclass(frozen=True, slots=True)
class ConnectorHit:
    """As `Hit`; `diverged` when some group falls short of `num_tokens`."""

    blocks: Tables
    num_tokens: int
    shared_prefix_boundary: int = 0
    diverged: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """A truncated hit."""

    blocks: Tables


CopyPair = tuple[BlockId, BlockId]
"""(source, destination)"""


@dataclass(frozen=True, slots=True)
class Grant:
    """The answer to `allocate`.

    `new_blocks` are what the worker appends to its table (null where a slot is skipped); at a
    request's first grant it takes the whole `table` instead. `copies` are those that this grant
    queued: the same pairs come out of `take_copies`.
    """

    granted: bool
    new_blocks: Tables
    table: Tables
    copies: tuple[CopyPair, ...] = ()


@dataclass(frozen=True, slots=True)
class Zeroing:
    """Blocks that the worker zeroes at the start of the step."""

    blocks: Table


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies that the worker performs, and the endpoints that stay referenced until released."""

    copies: tuple[CopyPair, ...]
    retained: Table


@dataclass(frozen=True, slots=True)
class Offloads:
    """Per request what is handed to the connector: (group, block, boundary in tokens)."""

    offloads: Mapping[RequestId, tuple[tuple[GroupId, BlockId, int], ...]]


@dataclass(frozen=True, slots=True)
class Dispatched:
    """The number of the step that was dispatched: 1, 2, 3, ..."""

    step: Step


@dataclass(frozen=True, slots=True)
class Released:
    """Blocks released at once; empty when they wait behind the fence."""

    blocks: Table


@dataclass(frozen=True, slots=True)
class Detached:
    """Blocks taken off a request and still held."""

    blocks: Table


@dataclass(frozen=True, slots=True)
class ResetDone:
    """Whether the cache was reset."""

    done: bool


@dataclass(frozen=True, slots=True)
class ChunkLength:
    """How many tokens the chunk computes."""

    num_tokens: int


@dataclass(frozen=True, slots=True)
class Books:
    """A snapshot. Whatever the target does not show is None.

    `refcounts`: holders per held block. `free_list`: next to be taken first. `keys`: per findable
    block its keys as (group, any text that names the digest). `pins`: pinned blocks, once per pin.
    `tables`: block tables of the requests that hold blocks.
    """

    refcounts: Mapping[BlockId, int] | None = None
    free_list: Table | None = None
    keys: Mapping[BlockId, tuple[tuple[GroupId, str], ...]] | None = None
    pins: Table | None = None
    tables: Mapping[RequestId, Tables] | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """The target refused the event as an error."""

    reason: str


class Rejected(Exception):
    """Raised by a target for an event that the rules call an error; it changes nothing."""


Observation = (
    Capabilities
    | Done
    | Hit
    | ConnectorHit
    | View
    | Grant
    | Zeroing
    | Copies
    | Offloads
    | Dispatched
    | Released
    | Detached
    | ResetDone
    | ChunkLength
    | Books
    | Rejection
)

ANSWERS: dict[type[Event], type[Observation]] = {
    Config: Capabilities,
    Submit: Done,
    BeginStep: Done,
    Lookup: Hit,
    LookupForConnector: ConnectorHit,
    Truncate: View,
    Allocate: Grant,
    TakeZeroing: Zeroing,
    TakeCopies: Copies,
    TakeOffloads: Offloads,
    EndStep: Dispatched,
    Execute: Done,
    Process: Done,
    ReleaseRetained: Released,
    Append: Done,
    Withdraw: Done,
    Preempt: Done,
    Finish: Done,
    Abort: Done,
    Detach: Detached,
    FreeDetached: Done,
    OffloadRead: Done,
    OffloadDone: Done,
    LoadExternal: Done,
    Evict: Done,
    Reset: ResetDone,
    Chunk: ChunkLength,
    Snapshot: Books,
}
"""What each event is answered with."""


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


EVENT_NAMES: dict[type[Event], str] = {
    kind: "configure" if kind is Config else _snake(kind.__name__) for kind in ANSWERS
}
"""The wire name of each event, which is also the name of the manager's method for it."""
