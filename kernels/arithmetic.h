// Where the bytes of a copy lie: every index that block_moves.cu computes, one expression each.
//
// arithmetic.py says the same in Python, with contracts. tests/kernels/test_proofs.py reads the
// functions below from this file, and proves with z3 that within the bounds of layout.py none of
// them overflows and that each byte of a segment is moved exactly once. Keep to expressions of
// + - * / %, comparisons and ?:, which its translator knows; it refuses anything else.
//
// Whoever includes this defines ARITHMETIC (how a function is declared) and u64.

#define TILE_BYTES 8192
#define LANES 128
#define MAX_GRID 2147483647

// How many tiles cover a segment of `size` bytes.
ARITHMETIC u64 tiles_of(u64 size) { return size / TILE_BYTES + (size % TILE_BYTES != 0 ? 1 : 0); }

// Where a tile begins in its segment.
ARITHMETIC u64 tile_start(u64 tile) { return tile * TILE_BYTES; }

// How many bytes of a segment a tile has.
ARITHMETIC u64 tile_length(u64 tile, u64 size) {
  return size - tile_start(tile) < TILE_BYTES ? size - tile_start(tile) : TILE_BYTES;
}

// Which entry of the list a tile of the launch belongs to, when each entry has `per_entry` tiles.
ARITHMETIC u64 entry_of(u64 tile, u64 per_entry) { return tile / per_entry; }

// Which tile of its entry that is.
ARITHMETIC u64 tile_in_entry(u64 tile, u64 per_entry) { return tile % per_entry; }

// How many blocks of threads are launched for so many tiles; each takes every grid-th tile.
ARITHMETIC u64 grid_of(u64 tiles) { return tiles < MAX_GRID ? tiles : MAX_GRID; }

// The first byte of a tile of a block, counted from the segment's base.
ARITHMETIC u64 byte_offset(u64 block, u64 stride, u64 tile) {
  return block * stride + tile_start(tile);
}

// The widest access that can be aligned at both addresses at once.
ARITHMETIC u64 common_width(u64 one, u64 other) {
  return one % 16 == other % 16 ? 16
       : one % 8 == other % 8 ? 8
       : one % 4 == other % 4 ? 4
       : one % 2 == other % 2 ? 2 : 1;
}

// How many bytes lie before the first aligned unit.
ARITHMETIC u64 head_length(u64 address, u64 width, u64 length) {
  return (width - address % width) % width < length ? (width - address % width) % width : length;
}

// How many whole units follow the head.
ARITHMETIC u64 body_units(u64 length, u64 head, u64 width) { return (length - head) / width; }

// Where the bytes after the last whole unit begin.
ARITHMETIC u64 tail_start(u64 head, u64 units, u64 width) { return head + units * width; }

// How many rounds the lanes need for so many units.
ARITHMETIC u64 rounds_of(u64 units) { return units / LANES + (units % LANES != 0 ? 1 : 0); }

// The unit that a lane moves in a round.
ARITHMETIC u64 unit_of(u64 lane, u64 round) { return round * LANES + lane; }
