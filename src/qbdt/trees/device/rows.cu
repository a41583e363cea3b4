// Rows of nodes: division, and histograms of fixed-point numbers.
//
// Bin codes are (row, feature), a row padded to `stride` bytes, so that a row anywhere in memory is read in one piece.
// Row numbers of all nodes are in two lists; a node owns one range per segment (`ranges`, as (node, segment, begin or
// end)) in one of them (`lists`: 0 or 1, −1 for the root, where row i is i). Its children get the same range of the
// other list. The order of rows in a node depends on timing; sums of integers do not depend on it.

#define ITEMS 4
#define LEAST_ROWS 4096  // rows below which emptying a block's sums costs more than filling them

struct Rows {
  const int* list;  // null for the root
  __device__ int operator[](i64 i) const { return list ? list[i] : (int)i; }
};

__device__ Rows rows_of(int node, const int* lists, const int* first, const int* second) {
  Rows rows;
  rows.list = lists[node] < 0 ? nullptr : lists[node] == 0 ? first : second;
  return rows;
}

// Divide the node task[0] by the codes of feature task[1] into nodes task[2] and task[3]; goes_right is 1 for each code
// that goes right. The child with fewer rows is written to task[4]. `cursors` has two numbers per segment and one for
// all, zero before and after.
KERNEL divide_rows(const u8* codes, int stride, int n_segments, int* task,
                                       const u8* goes_right, int* ranges, int* lists, int* first, int* second,
                                       int* cursors) {
  __shared__ int count[2], place[2], is_last;
  __shared__ u8 table[BINS];
  int node = task[0], feature = task[1];
  if (node < 0) return;
  Rows rows = rows_of(node, lists, first, second);
  int other = lists[node] == 0 ? 1 : 0;
  int* out = other == 0 ? first : second;
  FOR_THREADS(code, 0, BINS) table[code] = goes_right[code];
  for (int segment = 0; segment < n_segments; segment++) {
    const int* own = ranges + 2 * ((i64)node * n_segments + segment);
    i64 begin = own[0], end = own[1], tile = (i64)ITEMS * blockDim.x;
    for (i64 base = begin + blockIdx.x * tile; base < end; base += gridDim.x * tile) {
      int row[ITEMS], side[ITEMS], offset[ITEMS];
      FOR_THREADS(i, 0, 2) count[i] = 0;
      __syncthreads();
      for (int k = 0; k < ITEMS; k++) {
        i64 i = base + k * blockDim.x + threadIdx.x;
        bool is_in = i < end;
        row[k] = is_in ? rows[i] : 0;
        side[k] = is_in ? table[codes[(i64)row[k] * stride + feature]] : -1;
      }
      for (int k = 0; k < ITEMS; k++) {
        int left = reserve(side[k] == 0, count), right = reserve(side[k] == 1, count + 1);
        offset[k] = side[k] == 1 ? right : left;
      }
      __syncthreads();
      if (threadIdx.x == 0) {
        place[0] = begin + atomicAdd(cursors + 2 * segment, count[0]);
        place[1] = end - count[1] - atomicAdd(cursors + 2 * segment + 1, count[1]);
      }
      __syncthreads();
      for (int k = 0; k < ITEMS; k++)
        if (side[k] >= 0) out[place[side[k]] + offset[k]] = row[k];
      __syncthreads();
    }
  }
  // The block that ends last writes the children's ranges.
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(cursors + 2 * n_segments, 1) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  FOR_THREADS(segment, 0, n_segments) {
    const int* own = ranges + 2 * ((i64)node * n_segments + segment);
    int* left = ranges + 2 * ((i64)task[2] * n_segments + segment);
    int* right = ranges + 2 * ((i64)task[3] * n_segments + segment);
    int middle = own[0] + atomicAdd(cursors + 2 * segment, 0);
    left[0] = own[0];
    left[1] = right[0] = middle;
    right[1] = own[1];
    cursors[2 * segment] = cursors[2 * segment + 1] = 0;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    i64 difference = 0;
    for (int s = 0; s < 2 * n_segments; s++)
      difference += (s % 2 ? 1 : -1) * (i64)(ranges[2 * (i64)task[2] * n_segments + s] - ranges[2 * (i64)task[3] * n_segments + s]);
    task[4] = difference <= 0 ? task[2] : task[3];
    lists[task[2]] = lists[task[3]] = other;
    cursors[2 * n_segments] = 0;
  }
}

// Sums of `WIDTH` integers per row over the bins of 4 × QUADS features, in shared memory: first all low halves, then
// all high halves, each as (number, feature, bin).
template <int QUADS, int WIDTH>
__device__ void add_range(const u8* codes, int stride, Rows rows, i64 begin, i64 end, const i64* values, u32* sums) {
  u32* high = sums + WIDTH * QUADS * 4 * BINS;
  FOR_THREADS(i, begin, end) {
    i64 row = rows[i];
    const u64* words = (const u64*)(codes + row * stride);
    u64 own[(QUADS + 1) / 2];
    i64 value[WIDTH];
#pragma unroll
    for (int k = 0; k < (QUADS + 1) / 2; k++) own[k] = words[k];
#pragma unroll
    for (int c = 0; c < WIDTH; c++) value[c] = values[WIDTH * row + c];
#pragma unroll
    for (int f = 0; f < 4 * QUADS; f++) {
      int bin = f * BINS + (int)(own[f / 8] >> (8 * (f % 8)) & 255);
#pragma unroll
      for (int c = 0; c < WIDTH; c++) add_halves(sums + c * QUADS * 4 * BINS + bin, high + c * QUADS * 4 * BINS + bin, value[c]);
    }
  }
}

// Histogram of the node *node_of: of rows of all segments with a base, which is the place of their first sum. Blocks
// with the same y serve the same 4 × QUADS features, from firsts[y] on; their sums go to `out` + y × step.
template <int QUADS, int WIDTH>
__device__ void fill_histogram(const u8* codes, int stride, int n_features, const int* node_of, int n_segments,
                               const int* ranges, const int* lists, const int* first, const int* second,
                               const i64* values, const i64* bases, const int* firsts, i64 step, i64 node_step,
                               i64* out) {
  SHARED(u32, sums);
  const int size = WIDTH * QUADS * 4 * BINS;
  int node = *node_of;
  if (node < 0) return;
  const int* own = ranges + 2 * (i64)node * n_segments;
  i64 total = 0;
  for (int s = 0; s < n_segments; s++)
    if (bases[s] >= 0) total += own[2 * s + 1] - own[2 * s];
  // A block takes neighbouring rows, at least LEAST_ROWS of them.
  i64 share = (total + gridDim.x - 1) / gridDim.x;
  if (share < LEAST_ROWS) share = LEAST_ROWS;
  i64 low = blockIdx.x * share, high = low + share < total ? low + share : total, before = 0;
  if (low >= high) return;
  int feature = firsts[blockIdx.y], n_own = n_features - feature < 4 * QUADS ? n_features - feature : 4 * QUADS;
  Rows rows = rows_of(node, lists, first, second);
  FOR_THREADS(i, 0, 2 * size) sums[i] = 0;
  __syncthreads();
  for (int s = 0; s < n_segments; s++) {
    if (bases[s] < 0) continue;
    i64 begin = own[2 * s], n = own[2 * s + 1] - begin;
    i64 from = low > before ? low - before : 0, to = high - before < n ? high - before : n;
    before += n;
    if (from >= to) continue;
    add_range<QUADS, WIDTH>(codes + feature, stride, rows, begin + from, begin + to, values, sums);
    __syncthreads();
    i64* target = out + node * node_step + blockIdx.y * step + bases[s];
    FOR_THREADS(i, 0, n_own * BINS) {
      for (int c = 0; c < WIDTH; c++) {
        i64 at = c * QUADS * 4 * BINS + i, sum = join_halves(sums[at], sums[size + at]);
        if (sum) atomicAdd((u64*)target + WIDTH * i + c, (u64)sum);
        sums[at] = sums[size + at] = 0;
      }
    }
    __syncthreads();
  }
}

#define HISTOGRAM(NAME, QUADS, WIDTH)                                                                                 \
  KERNEL NAME(const u8* codes, int stride, int n_features, const int* node_of, int n_segments,    \
                                  const int* ranges, const int* lists, const int* first, const int* second,           \
                                  const i64* values, const i64* bases, const int* firsts, i64 step, i64 node_step,    \
                                  i64* out) {                                                                         \
    fill_histogram<QUADS, WIDTH>(codes, stride, n_features, node_of, n_segments, ranges, lists, first, second,        \
                                 values, bases, firsts, step, node_step, out);                                        \
  }
#define HISTOGRAMS(QUADS) HISTOGRAM(add_weights_##QUADS, QUADS, 1) HISTOGRAM(add_pairs_##QUADS, QUADS, 2)
HISTOGRAMS(1) HISTOGRAMS(2) HISTOGRAMS(3) HISTOGRAMS(4) HISTOGRAMS(5) HISTOGRAMS(6) HISTOGRAMS(7) HISTOGRAMS(8)

// Systematic histograms of the node *node_of: further columns of rows, for words of eight features, `words[y]`. A block
// has one plane of up to eight columns (z), see `Layout.place`.
KERNEL add_columns(const u8* codes, int stride, const int* node_of, int n_segments,
                                       const int* ranges, const int* lists, const int* first, const int* second,
                                       const int* columns, const i64* starts, const i64* offsets, const i64* widths,
                                       const i64* bases, const int* words, i64 step, i64* out) {
  SHARED(u32, sums);
  const int plane = 8, size = plane * 8 * BINS;
  int node = *node_of, column = plane * blockIdx.z;
  if (node < 0) return;
  Rows rows = rows_of(node, lists, first, second);
  for (int s = 0; s < n_segments; s++) {
    int width = (int)widths[s] - column < plane ? (int)widths[s] - column : plane;
    const int* own = ranges + 2 * ((i64)node * n_segments + s);
    i64 begin = own[0], n = own[1] - begin, share = (n + gridDim.x - 1) / gridDim.x;
    if (share < LEAST_ROWS) share = LEAST_ROWS;
    i64 low = begin + blockIdx.x * share, high = low + share < own[1] ? low + share : own[1];
    if (width <= 0 || low >= high) continue;
    FOR_THREADS(i, 0, 2 * size) sums[i] = 0;
    __syncthreads();
    FOR_THREADS(i, low, high) {
      i64 row = rows[i];
      u64 word = *(const u64*)(codes + row * stride + 8 * words[blockIdx.y]);
      const int* given = columns + offsets[s] + (row - starts[s]) * widths[s] + column;
      for (int c = 0; c < width; c++) {
        i64 value = given[c];
        if (value == 0) continue;
        for (int f = 0; f < 8; f++) {
          int at = (c * 8 + f) * BINS + (int)(word >> (8 * f) & 255);
          add_halves(sums + at, sums + size + at, value);
        }
      }
    }
    __syncthreads();
    i64* target = out + blockIdx.y * step + bases[s] + 8 * BINS * column;
    FOR_THREADS(i, 0, width * 8 * BINS) {
      i64 c = i / (8 * BINS), at = i % (8 * BINS), sum = join_halves(sums[i], sums[size + i]);
      if (sum) atomicAdd((u64*)target + at * width + c, (u64)sum);
    }
    __syncthreads();
  }
}
