// Boosting by residuals on a device: what `residuals.py` does on the CPU, number by number the same.

#define ALL_ROWS -1
#define MOST_SLOTS 32
#define LIMBS 68

// exp(x) for x ≤ 0, see residuals.py.
__device__ double exponential(double x) {
  double y = (x > -64.0 ? x : -64.0) / 256.0;
  double series = y * (1.0 / 40320.0) + 1.0 / 5040.0;
  series = series * y + 1.0 / 720.0;
  series = series * y + 1.0 / 120.0;
  series = series * y + 1.0 / 24.0;
  series = series * y + 1.0 / 6.0;
  series = series * y + 0.5;
  series = series * y + 1.0;
  double power = series * y + 1.0;
  for (int i = 0; i < 8; i++) power *= power;
  return power;
}

__device__ bool is_drawn(i64 seed, i64 threshold, u64 position) {
  if (threshold == ALL_ROWS) return true;
  u64 z = (u64)seed + (position + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return (i64)((z ^ (z >> 31)) >> 11) < threshold;
}

// Pairs of one segment's rows: minus the gradient and the curvature of the logistic loss.
KERNEL logistic_pairs(const double* weight, const double* log_ratio, int is_signal, i64 n, double numerator_scale,
                      double denominator_scale, i64 seed, i64 threshold, i64 position, i64* pairs) {
  FOR_ALL(i, 0, n) {
    double small = exponential(-fabs(log_ratio[i]));
    double likely = 1.0 / (1.0 + small), unlikely = small * likely;
    double p = log_ratio[i] > 0.0 ? likely : unlikely, rest = log_ratio[i] > 0.0 ? unlikely : likely;
    double gradient = is_signal ? weight[i] * rest : -weight[i] * p;
    bool counts = is_drawn(seed, threshold, position + i);
    pairs[2 * i] = counts ? (i64)rint(gradient * numerator_scale) : 0;
    pairs[2 * i + 1] = counts ? (i64)rint(weight[i] * p * rest * denominator_scale) : 0;
  }
}

// Pairs of nominal rows: Σ_k c_k (Δ_k − n (m_k + f_k)) and n. `coefficients` are those of the columns, then all c_k.
KERNEL shift_pairs(const double* weight, const double* columns, const double* current, double common, int n_columns,
                   int n_sources, const double* coefficients, double mean, i64 n, double numerator_scale,
                   double denominator_scale, i64 seed, i64 threshold, i64 position, i64* pairs) {
  const double* of_sources = coefficients + n_columns;
  FOR_ALL(i, 0, n) {
    double shift = weight[i] * common, fitted = mean;
    for (int j = 0; j < n_columns; j++) shift += columns[i * n_columns + j] * coefficients[j];
    for (int k = 0; k < n_sources; k++) fitted += current[i * n_sources + k] * of_sources[k];
    double yields = weight[i] + weight[i] * weight[i];
    bool counts = is_drawn(seed, threshold, position + i);
    pairs[2 * i] = counts ? (i64)rint((shift - yields * fitted) * numerator_scale) : 0;
    pairs[2 * i + 1] = counts ? (i64)rint(yields * denominator_scale) : 0;
  }
}

// Pairs of a variation's rows, which have no yield.
KERNEL varied_pairs(const double* weight, i64 n, double scale, i64 seed, i64 threshold, i64 position, i64* pairs) {
  FOR_ALL(i, 0, n) pairs[2 * i] = is_drawn(seed, threshold, position + i) ? (i64)rint(weight[i] * scale) : 0;
}

struct LeafRows {
  const int *list, *range;
};

// Rows of one leaf and segment.
__device__ LeafRows rows_of_leaf(int leaf, int segment, int n_segments, const int* leaves, const int* ranges,
                                 const int* lists, const int* first, const int* second) {
  int node = leaves[leaf];
  LeafRows rows;
  rows.list = lists[node] < 0 ? nullptr : lists[node] == 0 ? first : second;
  rows.range = ranges + 2 * ((i64)node * n_segments + segment);
  return rows;
}

// Add a leaf's output (y), `width` numbers, to each of its rows of a segment, whose numbers start with row `start`.
KERNEL add_outputs(int n_segments, const int* leaves, const int* ranges, const int* lists, const int* first,
                   const int* second, int segment, i64 start, int width, const double* outputs, double* current) {
  LeafRows rows = rows_of_leaf(blockIdx.y, segment, n_segments, leaves, ranges, lists, first, second);
  const double* own = outputs + (i64)blockIdx.y * width;
  FOR_ALL(i, rows.range[0], rows.range[1]) {
    double* at = current + ((rows.list ? rows.list[i] : i) - start) * width;
    for (int k = 0; k < width; k++) at[k] += own[k];
  }
}

// Write a column of a table, (row, column).
KERNEL place_column(i64 n, int width, int column, const double* given, double* out) {
  FOR_ALL(i, 0, n) out[i * width + column] = given[i];
}

KERNEL add_values(i64 n, const double* given, double* out) { FOR_ALL(i, 0, n) out[i] += given[i]; }

// Sums over a leaf's rows (y) of a segment: Σ w, and of nominal rows Σ n, all Σ n r₀, all Σ n f_k, all Σ of columns, each
// rounded by its scale. Arrays start with the segment's first row, `start`; `out` is (leaf, slot) with `step` between
// leaves. Slots first_slot … first_slot + MOST_SLOTS − 1 of n_slots are summed.
KERNEL sum_leaves(int n_segments, const int* leaves, const int* ranges, const int* lists, const int* first,
                  const int* second, int segment, i64 start, const double* weight, const double* ratio,
                  const double* current, const double* columns, int n_ratios, int n_sources, int n_columns,
                  int first_slot, int n_slots, const double* scales, i64 step, i64* out) {
  SHARED(u64, sums);
  LeafRows rows = rows_of_leaf(blockIdx.y, segment, n_segments, leaves, ranges, lists, first, second);
  i64 own[MOST_SLOTS];
  int n_own = n_slots - first_slot < MOST_SLOTS ? n_slots - first_slot : MOST_SLOTS;
  for (int slot = 0; slot < n_own; slot++) own[slot] = 0;
  FOR_ALL(i, rows.range[0], rows.range[1]) {
    i64 row = (rows.list ? rows.list[i] : i) - start;
    double w = weight[row], n = w + w * w;
    for (int k = 0; k < n_own; k++) {
      int slot = first_slot + k;
      int of_ratio = slot - 2, of_source = of_ratio - n_ratios, of_column = of_source - n_sources;
      double value = slot == 0              ? w
                     : slot == 1            ? n
                     : of_source < 0        ? n * ratio[row * n_ratios + of_ratio]
                     : of_column < 0        ? n * current[row * n_sources + of_source]
                                            : columns[row * n_columns + of_column];
      own[k] += (i64)rint(value * scales[slot]);
    }
  }
  for (int k = 0; k < n_own; k++) add_block((u64)own[k], sums, (u64*)out + blockIdx.y * step + first_slot + k);
}

// Integers that are ordered as floating-point numbers are.
__device__ i64 ordered(double value) {
  i64 bits = __double_as_longlong(value + 0.0);
  return bits ^ ((bits >> 63) & 0x7fffffffffffffffll);
}

// Add |w| of each row, in units, to the first of some increasing keys that is not below the key of its value.
KERNEL sum_up_to(const double* values, const double* weight, i64 n, double scale, const i64* keys, int n_keys,
                 u64* out) {
  FOR_ALL(i, 0, n) {
    i64 key = ordered(values[i]);
    int low = 0, high = n_keys;
    while (low < high) {
      int middle = (low + high) / 2;
      if (keys[middle] < key) low = middle + 1; else high = middle;
    }
    u64 size = (u64)rint(fabs(weight[i]) * scale);
    if (size) atomicAdd(out + low, size);
  }
}

// Scores r − a g.
KERNEL join_terms(i64 n, const double* ratio, const double* shift, double share, double* out) {
  FOR_ALL(i, 0, n) out[i] = ratio[i] - share * shift[i];
}

// Exact sums, (bin, limb), of the weights of rows, or of their squares, in the bins of their values between edges; see
// `exact_sums.py`.
KERNEL sum_exactly(const double* values, const double* weight, i64 n, int is_square, const double* edges, int n_edges,
                   u64* out) {
  SHARED(u32, sums);
  int size = (n_edges + 1) * LIMBS;
  FOR_THREADS(i, 0, 2 * size) sums[i] = 0;
  __syncthreads();
  FOR_ALL(i, 0, n) {
    int low = 0, high = n_edges, exponent;
    while (low < high) {
      int middle = (low + high) / 2;
      if (edges[middle] <= values[i]) low = middle + 1; else high = middle;
    }
    double fraction = frexp(is_square ? weight[i] * weight[i] : weight[i], &exponent);
    i64 whole = (i64)(fraction * 9007199254740992.0), mask = 0xffffffffll;
    int position = exponent - 53 + 1126, limb = position >> 5, shift = position & 31;
    i64 lower = (whole & mask) << shift, upper = (whole >> 32) << shift;
    u32* at = sums + low * LIMBS + limb;
    add_halves(at, at + size, lower & mask);
    add_halves(at + 1, at + 1 + size, (i64)((u64)lower >> 32) + (upper & mask));
    add_halves(at + 2, at + 2 + size, upper >> 32);
  }
  __syncthreads();
  FOR_THREADS(i, 0, size) {
    i64 sum = join_halves(sums[i], sums[size + i]);
    if (sum) atomicAdd(out + i, (u64)sum);
  }
}
