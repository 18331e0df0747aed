// Copy and fill of cache blocks: one launch for all pairs, layers and segments.
//
// A launch is a list of tiles: entry by entry, segment by segment, TILE_BYTES at a time. Each block
// of threads takes every grid-th tile, so that any number of tiles fits any grid. A tile is moved
// in units as wide as both of its ends can be aligned to, with single bytes before and after.
//
// The same text is compiled three ways: by NVRTC (cuda.py), by g++ through host_shim.h (host.py),
// and by tests/kernels with faults planted in it. All index arithmetic is in arithmetic.h.

#ifdef __CUDACC__
typedef unsigned long long u64;
#define ARITHMETIC static __device__ __forceinline__
#define DEVICE static __device__ __forceinline__
#define KERNEL extern "C" __global__ void __launch_bounds__(128)
#endif

#include "arithmetic.h"
#include "block_moves.h"

// Units that a lane reads before it writes the first: enough loads in flight to hide their latency.
#define UNROLL 4

// An address as a pointer to global memory. The conversion is of no effect but to say so: an address
// loaded from memory may be of any kind to the compiler, and it would emit generic accesses.
template <typename Unit>
DEVICE Unit* at(u64 address) {
#ifdef __CUDACC__
  return static_cast<Unit*>(__cvta_global_to_generic(address));
#else
  return reinterpret_cast<Unit*>(address);
#endif
}

// The segment that a tile of an entry belongs to: the last whose first tile is not beyond it.
DEVICE const Segment& segment_of(const Moves& moves, u64 tile) {
  u64 low = 0, high = moves.num_segments;
  while (high - low > 1) {
    u64 middle = low + (high - low) / 2;
    if (moves.segments[middle].first_tile <= tile) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return moves.segments[low];
}

template <typename Unit>
DEVICE void copy_units(u64 from, u64 to, u64 units, u64 lane) {
  const Unit* source = at<const Unit>(from);
  Unit* destination = at<Unit>(to);
  for (u64 round = 0; round < rounds_of(units); round += UNROLL) {
    Unit held[UNROLL];
#pragma unroll
    for (u64 k = 0; k < UNROLL; ++k) {
      u64 unit = unit_of(lane, round + k);
      if (unit < units) held[k] = source[unit];
    }
#pragma unroll
    for (u64 k = 0; k < UNROLL; ++k) {
      u64 unit = unit_of(lane, round + k);
      if (unit < units) destination[unit] = held[k];
    }
  }
}

DEVICE void copy_bytes(u64 from, u64 to, u64 count, u64 lane) {
  if (lane < count) at<unsigned char>(to)[lane] = at<const unsigned char>(from)[lane];
}

// Copy one tile: head, body, tail.
DEVICE void copy_tile(u64 from, u64 to, u64 length, u64 lane) {
  u64 width = common_width(from, to);
  u64 head = head_length(to, width, length);
  u64 units = body_units(length, head, width);
  u64 tail = tail_start(head, units, width);
  copy_bytes(from, to, head, lane);
  switch (width) {
    case 16: copy_units<uint4>(from + head, to + head, units, lane); break;
    case 8: copy_units<uint2>(from + head, to + head, units, lane); break;
    case 4: copy_units<unsigned int>(from + head, to + head, units, lane); break;
    case 2: copy_units<unsigned short>(from + head, to + head, units, lane); break;
    default: copy_units<unsigned char>(from + head, to + head, units, lane); break;
  }
  copy_bytes(from + tail, to + tail, length - tail, lane);
}

// Fill one tile with a byte.
DEVICE void fill_tile(u64 to, u64 length, unsigned int value, u64 lane) {
  u64 head = head_length(to, 16, length);
  u64 units = body_units(length, head, 16);
  u64 tail = tail_start(head, units, 16);
  unsigned int word = value * 0x01010101u;
  if (lane < head) at<unsigned char>(to)[lane] = static_cast<unsigned char>(value);
  for (u64 round = 0; round < rounds_of(units); ++round) {
    u64 unit = unit_of(lane, round);
    if (unit < units) at<uint4>(to + head)[unit] = make_uint4(word, word, word, word);
  }
  if (lane < length - tail) at<unsigned char>(to + tail)[lane] = static_cast<unsigned char>(value);
}

// The record Moves, one argument a field: what launches kernels knows no records.
#define MOVES \
  const Segment *segments, u64 num_segments, u64 tiles_per_entry, u64 scratch, u64 slot_bytes

// Copy the source of each pair that has a slot to that slot. Comes before copy_blocks.
KERNEL stage_blocks(MOVES, const Pair* pairs, u64 num_pairs) {
  Moves moves = {segments, num_segments, tiles_per_entry, scratch, slot_bytes};
  u64 tiles = num_pairs * moves.tiles_per_entry;
  for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const Pair& pair = pairs[entry_of(tile, moves.tiles_per_entry)];
    if (pair.slot == NO_SLOT) continue;
    u64 inner = tile_in_entry(tile, moves.tiles_per_entry);
    const Segment& segment = segment_of(moves, inner);
    u64 part = inner - segment.first_tile;
    u64 from = segment.base + byte_offset(pair.source, segment.stride, part);
    u64 to = moves.scratch + segment.staged + byte_offset(pair.slot, moves.slot_bytes, part);
    copy_tile(from, to, tile_length(part, segment.size), threadIdx.x);
  }
}

// Copy each pair's source, or its slot, to its destination. No two pairs share a destination, and a
// source that is a destination too has a slot; so no order among the tiles can be seen.
KERNEL copy_blocks(MOVES, const Pair* pairs, u64 num_pairs) {
  Moves moves = {segments, num_segments, tiles_per_entry, scratch, slot_bytes};
  u64 tiles = num_pairs * moves.tiles_per_entry;
  for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const Pair& pair = pairs[entry_of(tile, moves.tiles_per_entry)];
    if (pair.source == pair.destination) continue;
    u64 inner = tile_in_entry(tile, moves.tiles_per_entry);
    const Segment& segment = segment_of(moves, inner);
    u64 part = inner - segment.first_tile;
    u64 from = segment.base + byte_offset(pair.source, segment.stride, part);
    if (pair.slot != NO_SLOT) {
      from = moves.scratch + segment.staged + byte_offset(pair.slot, moves.slot_bytes, part);
    }
    u64 to = segment.base + byte_offset(pair.destination, segment.stride, part);
    copy_tile(from, to, tile_length(part, segment.size), threadIdx.x);
  }
}

// Fill blocks with a byte: zero before first use, poison when freed.
KERNEL fill_blocks(MOVES, const u64* blocks, u64 num_blocks, unsigned int value) {
  Moves moves = {segments, num_segments, tiles_per_entry, scratch, slot_bytes};
  u64 tiles = num_blocks * moves.tiles_per_entry;
  for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    u64 block = blocks[entry_of(tile, moves.tiles_per_entry)];
    u64 inner = tile_in_entry(tile, moves.tiles_per_entry);
    const Segment& segment = segment_of(moves, inner);
    u64 part = inner - segment.first_tile;
    u64 to = segment.base + byte_offset(block, segment.stride, part);
    fill_tile(to, tile_length(part, segment.size), value, threadIdx.x);
  }
}
