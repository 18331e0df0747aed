// What the host hands to the kernels: 64-bit words only, so that a row of int64 is a record.
// plan.py writes these rows.

// A stretch of bytes that every block has: that of block b is at base + b * stride. In the scratch
// area it is at offset `staged` of a slot. `first_tile` counts the tiles of the segments before.
struct Segment {
  u64 base, stride, size, first_tile, staged;
};

// A block to copy. With a slot, its source was also a destination, so its bytes are taken from that
// slot of the scratch area, where stage_blocks put them before anything was written.
struct Pair {
  u64 source, destination, slot;
};

#define NO_SLOT 0xffffffffffffffffull

// Everything a launch has besides its list: the segments, and where the scratch area is.
struct Moves {
  const Segment* segments;
  u64 num_segments, tiles_per_entry, scratch, slot_bytes;
};
