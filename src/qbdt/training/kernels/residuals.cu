// Boosting by residuals on a device: what `residuals.py` does on the CPU, number by number the same.

#define ALL_ROWS -1
#define MOST_SLOTS 32
#define LIMBS 68

// Tails and bits of 2^(i/128).
TABLE u64 POWERS[256] = {
    0x0ull, 0x3ff0000000000000ull, 0x3c9b3b4f1a88bf6eull, 0x3feff63da9fb3335ull,
    0xbc7160139cd8dc5dull, 0x3fefec9a3e778061ull, 0xbc905e7a108766d1ull, 0x3fefe315e86e7f85ull,
    0x3c8cd2523567f613ull, 0x3fefd9b0d3158574ull, 0xbc8bce8023f98efaull, 0x3fefd06b29ddf6deull,
    0x3c60f74e61e6c861ull, 0x3fefc74518759bc8ull, 0x3c90a3e45b33d399ull, 0x3fefbe3ecac6f383ull,
    0x3c979aa65d837b6dull, 0x3fefb5586cf9890full, 0x3c8eb51a92fdeffcull, 0x3fefac922b7247f7ull,
    0x3c3ebe3d702f9cd1ull, 0x3fefa3ec32d3d1a2ull, 0xbc6a033489906e0bull, 0x3fef9b66affed31bull,
    0xbc9556522a2fbd0eull, 0x3fef9301d0125b51ull, 0xbc5080ef8c4eea55ull, 0x3fef8abdc06c31ccull,
    0xbc91c923b9d5f416ull, 0x3fef829aaea92de0ull, 0x3c80d3e3e95c55afull, 0x3fef7a98c8a58e51ull,
    0xbc801b15eaa59348ull, 0x3fef72b83c7d517bull, 0xbc8f1ff055de323dull, 0x3fef6af9388c8deaull,
    0x3c8b898c3f1353bfull, 0x3fef635beb6fcb75ull, 0xbc96d99c7611eb26ull, 0x3fef5be084045cd4ull,
    0x3c9aecf73e3a2f60ull, 0x3fef54873168b9aaull, 0xbc8fe782cb86389dull, 0x3fef4d5022fcd91dull,
    0x3c8a6f4144a6c38dull, 0x3fef463b88628cd6ull, 0x3c807a05b0e4047dull, 0x3fef3f49917ddc96ull,
    0x3c968efde3a8a894ull, 0x3fef387a6e756238ull, 0x3c875e18f274487dull, 0x3fef31ce4fb2a63full,
    0x3c80472b981fe7f2ull, 0x3fef2b4565e27cddull, 0xbc96b87b3f71085eull, 0x3fef24dfe1f56381ull,
    0x3c82f7e16d09ab31ull, 0x3fef1e9df51fdee1ull, 0xbc3d219b1a6fbffaull, 0x3fef187fd0dad990ull,
    0x3c8b3782720c0ab4ull, 0x3fef1285a6e4030bull, 0x3c6e149289cecb8full, 0x3fef0cafa93e2f56ull,
    0x3c834d754db0abb6ull, 0x3fef06fe0a31b715ull, 0x3c864201e2ac744cull, 0x3fef0170fc4cd831ull,
    0x3c8fdd395dd3f84aull, 0x3feefc08b26416ffull, 0xbc86a3803b8e5b04ull, 0x3feef6c55f929ff1ull,
    0xbc924aedcc4b5068ull, 0x3feef1a7373aa9cbull, 0xbc9907f81b512d8eull, 0x3feeecae6d05d866ull,
    0xbc71d1e83e9436d2ull, 0x3feee7db34e59ff7ull, 0xbc991919b3ce1b15ull, 0x3feee32dc313a8e5ull,
    0x3c859f48a72a4c6dull, 0x3feedea64c123422ull, 0xbc9312607a28698aull, 0x3feeda4504ac801cull,
    0xbc58a78f4817895bull, 0x3feed60a21f72e2aull, 0xbc7c2c9b67499a1bull, 0x3feed1f5d950a897ull,
    0x3c4363ed60c2ac11ull, 0x3feece086061892dull, 0x3c9666093b0664efull, 0x3feeca41ed1d0057ull,
    0x3c6ecce1daa10379ull, 0x3feec6a2b5c13cd0ull, 0x3c93ff8e3f0f1230ull, 0x3feec32af0d7d3deull,
    0x3c7690cebb7aafb0ull, 0x3feebfdad5362a27ull, 0x3c931dbdeb54e077ull, 0x3feebcb299fddd0dull,
    0xbc8f94340071a38eull, 0x3feeb9b2769d2ca7ull, 0xbc87deccdc93a349ull, 0x3feeb6daa2cf6642ull,
    0xbc78dec6bd0f385full, 0x3feeb42b569d4f82ull, 0xbc861246ec7b5cf6ull, 0x3feeb1a4ca5d920full,
    0x3c93350518fdd78eull, 0x3feeaf4736b527daull, 0x3c7b98b72f8a9b05ull, 0x3feead12d497c7fdull,
    0x3c9063e1e21c5409ull, 0x3feeab07dd485429ull, 0x3c34c7855019c6eaull, 0x3feea9268a5946b7ull,
    0x3c9432e62b64c035ull, 0x3feea76f15ad2148ull, 0xbc8ce44a6199769full, 0x3feea5e1b976dc09ull,
    0xbc8c33c53bef4da8ull, 0x3feea47eb03a5585ull, 0xbc845378892be9aeull, 0x3feea34634ccc320ull,
    0xbc93cedd78565858ull, 0x3feea23882552225ull, 0x3c5710aa807e1964ull, 0x3feea155d44ca973ull,
    0xbc93b3efbf5e2228ull, 0x3feea09e667f3bcdull, 0xbc6a12ad8734b982ull, 0x3feea012750bdabfull,
    0xbc6367efb86da9eeull, 0x3fee9fb23c651a2full, 0xbc80dc3d54e08851ull, 0x3fee9f7df9519484ull,
    0xbc781f647e5a3ecfull, 0x3fee9f75e8ec5f74ull, 0xbc86ee4ac08b7db0ull, 0x3fee9f9a48a58174ull,
    0xbc8619321e55e68aull, 0x3fee9feb564267c9ull, 0x3c909ccb5e09d4d3ull, 0x3feea0694fde5d3full,
    0xbc7b32dcb94da51dull, 0x3feea11473eb0187ull, 0x3c94ecfd5467c06bull, 0x3feea1ed0130c132ull,
    0x3c65ebe1abd66c55ull, 0x3feea2f336cf4e62ull, 0xbc88a1c52fb3cf42ull, 0x3feea427543e1a12ull,
    0xbc9369b6f13b3734ull, 0x3feea589994cce13ull, 0xbc805e843a19ff1eull, 0x3feea71a4623c7adull,
    0xbc94d450d872576eull, 0x3feea8d99b4492edull, 0x3c90ad675b0e8a00ull, 0x3feeaac7d98a6699ull,
    0x3c8db72fc1f0eab4ull, 0x3feeace5422aa0dbull, 0xbc65b6609cc5e7ffull, 0x3feeaf3216b5448cull,
    0x3c7bf68359f35f44ull, 0x3feeb1ae99157736ull, 0xbc93091fa71e3d83ull, 0x3feeb45b0b91ffc6ull,
    0xbc5da9b88b6c1e29ull, 0x3feeb737b0cdc5e5ull, 0xbc6c23f97c90b959ull, 0x3feeba44cbc8520full,
    0xbc92434322f4f9aaull, 0x3feebd829fde4e50ull, 0xbc85ca6cd7668e4bull, 0x3feec0f170ca07baull,
    0x3c71affc2b91ce27ull, 0x3feec49182a3f090ull, 0x3c6dd235e10a73bbull, 0x3feec86319e32323ull,
    0xbc87c50422622263ull, 0x3feecc667b5de565ull, 0x3c8b1c86e3e231d5ull, 0x3feed09bec4a2d33ull,
    0xbc91bbd1d3bcbb15ull, 0x3feed503b23e255dull, 0x3c90cc319cee31d2ull, 0x3feed99e1330b358ull,
    0x3c8469846e735ab3ull, 0x3feede6b5579fdbfull, 0xbc82dfcd978e9db4ull, 0x3feee36bbfd3f37aull,
    0x3c8c1a7792cb3387ull, 0x3feee89f995ad3adull, 0xbc907b8f4ad1d9faull, 0x3feeee07298db666ull,
    0xbc55c3d956dcaebaull, 0x3feef3a2b84f15fbull, 0xbc90a40e3da6f640ull, 0x3feef9728de5593aull,
    0xbc68d6f438ad9334ull, 0x3feeff76f2fb5e47ull, 0xbc91eee26b588a35ull, 0x3fef05b030a1064aull,
    0x3c74ffd70a5fddcdull, 0x3fef0c1e904bc1d2ull, 0xbc91bdfbfa9298acull, 0x3fef12c25bd71e09ull,
    0x3c736eae30af0cb3ull, 0x3fef199bdd85529cull, 0x3c8ee3325c9ffd94ull, 0x3fef20ab5fffd07aull,
    0x3c84e08fd10959acull, 0x3fef27f12e57d14bull, 0x3c63cdaf384e1a67ull, 0x3fef2f6d9406e7b5ull,
    0x3c676b2c6c921968ull, 0x3fef3720dcef9069ull, 0xbc808a1883ccb5d2ull, 0x3fef3f0b555dc3faull,
    0xbc8fad5d3ffffa6full, 0x3fef472d4a07897cull, 0xbc900dae3875a949ull, 0x3fef4f87080d89f2ull,
    0x3c74a385a63d07a7ull, 0x3fef5818dcfba487ull, 0xbc82919e2040220full, 0x3fef60e316c98398ull,
    0x3c8e5a50d5c192acull, 0x3fef69e603db3285ull, 0x3c843a59ac016b4bull, 0x3fef7321f301b460ull,
    0xbc82d52107b43e1full, 0x3fef7c97337b9b5full, 0xbc892ab93b470dc9ull, 0x3fef864614f5a129ull,
    0x3c74b604603a88d3ull, 0x3fef902ee78b3ff6ull, 0x3c83c5ec519d7271ull, 0x3fef9a51fbc74c83ull,
    0xbc8ff7128fd391f0ull, 0x3fefa4afa2a490daull, 0xbc8dae98e223747dull, 0x3fefaf482d8e67f1ull,
    0x3c8ec3bc41aa2008ull, 0x3fefba1bee615a27ull, 0x3c842b94c3a9eb32ull, 0x3fefc52b376bba97ull,
    0x3c8a64a931d185eeull, 0x3fefd0765b6e4540ull, 0xbc8e37bae43be3edull, 0x3fefdbfdad9cbe14ull,
    0x3c77893b4d91cd9dull, 0x3fefe7c1819e90d8ull, 0x3c5305c14160cc89ull, 0x3feff3c22b8f71f1ull};

// exp(x) for −500 < x ≤ 0 to the last bit as the C library that the CPU's kernels call (glibc 2.28 and later, with fused
// multiply and add): x = k ln 2/128 + r, and a polynomial in r. Below −500 nothing is left of a row.
__device__ double exponential(double x) {
  double shifted = fma(184.6649652337873, x, 6755399441055744.0);  // 128/ln 2, and 1.5 × 2^52, which rounds
  u64 k = (u64)__double_as_longlong(shifted);
  double whole = shifted - 6755399441055744.0;
  double r = fma(whole, -1.2864023111638346e-14, fma(whole, -0.005415212348111709, x));
  double tail = __longlong_as_double((i64)POWERS[2 * (k % 128)]), square = r * r;
  double scale = __longlong_as_double((i64)(POWERS[2 * (k % 128) + 1] + (k << 45)));
  double low = fma(r, 0.16666666666665886, 0.49999999999996786);
  double high = fma(r, 0.008333335853059549, 0.0416666808410674);
  return fma(scale, fma(square * square, high, fma(square, low, tail + r)), scale);
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
    double likely = 1.0 / (1.0 + small), unlikely = small / (1.0 + small);
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
