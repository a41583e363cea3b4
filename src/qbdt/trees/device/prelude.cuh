// What all kernels share. The same source is compiled for a GPU, and for the CPU in tests (QBDT_ON_HOST): there a block
// has one thread, and one block runs after the other. So kernels walk through rows with strides of any size, and no
// block waits for another one. Nothing is contracted to fused operations: results have the bits of the CPU's kernels.

typedef unsigned char u8;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#define BINS 256
#define MISSING 255

#ifdef QBDT_ON_HOST
#include <cmath>
#include <cstring>
#define KERNEL extern "C" void
#define __device__ inline
#define __shared__ static
#define __restrict__
struct Dimensions { int x, y, z; };
static Dimensions blockIdx, gridDim, threadIdx = {0, 0, 0}, blockDim = {1, 1, 1};
alignas(16) static unsigned char shared_memory[256 * 1024];
extern "C" void place_block(int x, int y, int z, int nx, int ny, int nz) {
  blockIdx = {x, y, z};
  gridDim = {nx, ny, nz};
}
template <typename T>
static T atomicAdd(T* at, T value) { T old = *at; *at += value; return old; }
template <typename T>
static T atomicMax(T* at, T value) { T old = *at; if (value > old) *at = value; return old; }
static void __syncthreads() {}
static void __threadfence() {}
static i64 __double_as_longlong(double x) { i64 bits; memcpy(&bits, &x, 8); return bits; }
static double __longlong_as_double(i64 bits) { double x; memcpy(&x, &bits, 8); return x; }
using std::fabs; using std::fma; using std::frexp; using std::log; using std::log1p; using std::rint;
#else
#define KERNEL extern "C" __global__ void __launch_bounds__(1024)
extern __shared__ __align__(16) unsigned char shared_memory[];
#endif
#define SHARED(type, name) type* name = (type*)shared_memory

// Every thread of a block walks from its own place in begin … end − 1, whatever the number of threads.
#define FOR_THREADS(i, begin, end) for (i64 i = (i64)(begin) + threadIdx.x; i < (i64)(end); i += blockDim.x)
// The same for all threads of all blocks.
#define FOR_ALL(i, begin, end) \
  for (i64 i = (i64)(begin) + (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (i64)(end); i += (i64)gridDim.x * blockDim.x)

// Place in a list that those threads of a warp get which want one; all threads of the warp must call it.
__device__ int reserve(bool wanted, int* counter) {
#ifdef QBDT_ON_HOST
  int place = *counter;
  *counter += wanted;
  return place;
#else
  u32 mask = __ballot_sync(0xffffffffu, wanted);
  int lane = threadIdx.x & 31, base = 0;
  if (lane == 0 && mask) base = atomicAdd(counter, __popc(mask));
  base = __shfl_sync(0xffffffffu, base, 0);
  return base + __popc(mask & ((1u << lane) - 1));
#endif
}

// Add a 64-bit integer to a sum whose halves lie apart. Shared memory adds 32 bits at a time; the carry goes up by hand.
__device__ void add_halves(u32* low, u32* high, i64 value) {
  u32 addend = (u32)value, before = atomicAdd(low, addend);
  u32 above = (u32)(value >> 32) + (before > ~addend);
  if (above) atomicAdd(high, above);
}

__device__ i64 join_halves(u32 low, u32 high) { return (i64)(((u64)high << 32) + low); }

// Add up one number of each thread of a block, and add the sum to a total; `sums` has one place per thread.
__device__ void add_block(u64 value, u64* sums, u64* total) {
  sums[threadIdx.x] = value;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0 && sums[0]) atomicAdd(total, sums[0]);
  __syncthreads();
}
