// Boosting weights on a device: what `weights.py` does on the CPU, number by number the same.

__device__ i64 splitmix(u64 seed, u64 position) {
  u64 z = seed + (position + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z = z ^ (z >> 31);
  return (i64)(z >> 11);
}

#define ALL_ROWS -1

// Multiply the weights of all leaves' rows by the factors (leaf, side) of their leaf: `floats`, and `growth` of those
// segments that have further columns (offset −1: none). Blocks with the same y serve the same leaf.
KERNEL boost_rows(int n_segments, const int* leaves, const int* ranges, const int* lists,
                                      const int* first, const int* second, const int* sides, const double* factors,
                                      const i64* starts, const i64* growth_offsets, double* floats, double* growth) {
  int node = leaves[blockIdx.y];
  const int* list = lists[node] < 0 ? nullptr : lists[node] == 0 ? first : second;
  for (int s = 0; s < n_segments; s++) {
    const int* own = ranges + 2 * ((i64)node * n_segments + s);
    double factor = factors[2 * blockIdx.y + sides[s]];
    double* grown = growth_offsets[s] < 0 ? nullptr : growth + growth_offsets[s] - starts[s];
    FOR_ALL(i, own[0], own[1]) {
      i64 row = list ? list[i] : i;
      floats[row] *= factor;
      if (grown) grown[row] *= factor;
    }
  }
}

KERNEL rescale(double* values, i64 n, double factor) { FOR_ALL(i, 0, n) values[i] *= factor; }

// The largest absolute value, as bits: those of positive numbers are ordered as the numbers are.
KERNEL find_largest(const double* values, i64 n, u64* out) {
  u64 found = 0;
  FOR_ALL(i, 0, n) {
    u64 bits = (u64)__double_as_longlong(fabs(values[i]));
    found = bits > found ? bits : found;
  }
  if (found) atomicMax(out, found);
}

// Fixed point of one weight per row, zero for rows that a draw leaves out; adds Σ of absolute values of all rows.
KERNEL quantise_weights(const double* floats, i64 n, double scale, i64 seed, i64 threshold,
                                            i64 position, i64* fixed, u64* total) {
  SHARED(u64, sums);
  u64 sum = 0;
  FOR_ALL(i, 0, n) {
    i64 value = (i64)rint(floats[i] * scale);
    sum += (u64)(value < 0 ? -value : value);
    fixed[i] = threshold != ALL_ROWS && splitmix(seed, position + i) >= threshold ? 0 : value;
  }
  add_block(sum, sums, total);
}

// Fixed point of initial × growth of each row, into the first of its `width` columns; finds the largest |…|.
KERNEL quantise_columns(const double* initial, const double* growth, i64 n, int n_columns,
                                            int width, double scale, int* columns, u64* largest) {
  u64 found = 0;
  FOR_ALL(i, 0, n) {
    double factor = growth[i] * scale;
    for (int c = 0; c < n_columns; c++) {
      i64 value = (i64)rint(initial[i * n_columns + c] * factor);
      columns[i * width + c] = (int)value;
      u64 size = (u64)(value < 0 ? -value : value);
      found = size > found ? size : found;
    }
  }
  if (found) atomicMax(largest, found);
}

// Fixed point of the square of each row's weight, into one of its `width` columns; finds the largest.
KERNEL quantise_squares(const double* floats, i64 n, int width, int column, double scale,
                                            int* columns, u64* largest) {
  u64 found = 0;
  FOR_ALL(i, 0, n) {
    i64 value = (i64)rint(floats[i] * floats[i] * scale);
    columns[i * width + column] = (int)value;
    found = (u64)value > found ? (u64)value : found;
  }
  if (found) atomicMax(largest, found);
}

// Set the first columns of rows that a draw leaves out to zero.
KERNEL drop_columns(int* columns, i64 n, int width, int n_dropped, i64 seed, i64 threshold,
                                        i64 position) {
  FOR_ALL(i, 0, n)
    if (splitmix(seed, position + i) >= threshold)
      for (int c = 0; c < n_dropped; c++) columns[i * width + c] = 0;
}
