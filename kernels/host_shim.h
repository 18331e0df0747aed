// CUDA's words for g++: the grid is a loop, and so are the threads of a block, one after another.
// block_moves.cu has no barrier and no shared memory, so that any order of threads is one that a
// GPU may take; `reversed` takes the opposite order, in which a wrong order between tiles shows.

#include <cstdint>

typedef std::uint64_t u64;
#define ARITHMETIC extern "C"
#define DEVICE static inline
#define KERNEL static void

struct alignas(16) uint4 {
  unsigned int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned int x, y;
};
static inline uint4 make_uint4(unsigned int x, unsigned int y, unsigned int z, unsigned int w) {
  return uint4{x, y, z, w};
}

static thread_local struct {
  u64 x;
} blockIdx, threadIdx, gridDim;

template <typename Kernel>
static void launch(u64 grid, u64 lanes, bool reversed, Kernel kernel) {
  gridDim.x = grid;
  for (u64 block = 0; block < grid; ++block) {
    for (u64 lane = 0; lane < lanes; ++lane) {
      blockIdx.x = reversed ? grid - 1 - block : block;
      threadIdx.x = reversed ? lanes - 1 - lane : lane;
      kernel();
    }
  }
}
