// The kernels as a shared library for the CPU, called through ctypes (host.py). The functions of
// arithmetic.h are exported too, so that they can be compared with those of arithmetic.py.

#include "host_shim.h"

#include "block_moves.cu"

#define FIELDS moves.segments, moves.num_segments, moves.tiles_per_entry, moves.scratch, moves.slot_bytes

extern "C" {

void host_stage(Moves moves, const Pair* pairs, u64 count, u64 grid, int reversed) {
  launch(grid, LANES, reversed != 0, [&] { stage_blocks(FIELDS, pairs, count); });
}

void host_copy(Moves moves, const Pair* pairs, u64 count, u64 grid, int reversed) {
  launch(grid, LANES, reversed != 0, [&] { copy_blocks(FIELDS, pairs, count); });
}

void host_fill(Moves moves, const u64* blocks, u64 count, unsigned int value, u64 grid,
               int reversed) {
  launch(grid, LANES, reversed != 0, [&] { fill_blocks(FIELDS, blocks, count, value); });
}

u64 host_segment_of(Moves moves, u64 tile) {
  return static_cast<u64>(&segment_of(moves, tile) - moves.segments);
}
}
