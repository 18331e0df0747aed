"""What a configuration comes to, worked out once: flat lists by group."""

from __future__ import annotations

from kvspec.spec.types import Config, Connector, Tables


class Layout:
    """A configuration, unpacked. All sizes in tokens but `units`, in hash units a block."""

    __slots__ = (
        "alignment", "caching", "connected", "diverging", "eagle_drop", "fine", "full_ids",
        "hash_unit", "max_model_len", "nothing", "num_groups", "recurrent", "recurrent_ids",
        "sizes", "units", "zeroed",
    )  # fmt: skip

    def __init__(self, config: Config) -> None:
        """Unpack. O(groups)."""
        groups = config.groups
        self.hash_unit: int = config.hash_unit
        self.max_model_len: int = config.max_model_len
        self.caching: bool = config.caching
        self.connected: bool = config.connector is not Connector.NONE
        self.diverging: bool = config.connector is Connector.DIVERGING
        self.fine: bool = config.fine
        self.alignment: int = config.alignment
        self.num_groups: int = len(groups)
        self.sizes: list[int] = [group.block_size for group in groups]
        self.units: list[int] = [group.block_size // config.hash_unit for group in groups]
        self.recurrent: list[bool] = [group.recurrent for group in groups]
        self.zeroed: list[bool] = [group.zeroed for group in groups]
        self.full_ids: list[int] = [g for g, group in enumerate(groups) if not group.recurrent]
        self.recurrent_ids: list[int] = [g for g, group in enumerate(groups) if group.recurrent]
        self.eagle_drop: list[int] = [
            config.eagle_unit(group) if group.eagle else 0 for group in groups
        ]
        self.nothing: Tables = ((),) * len(groups)
