// Bin codes of values, and scores from codes.

// Number of edges at or below a value, or MISSING for NaN; `edges` increase.
__device__ int code_of(double x, const double* edges, int n_edges) {
  if (x != x) return MISSING;
  int low = 0, high = n_edges;
  while (low < high) {
    int middle = (low + high) / 2;
    if (edges[middle] <= x) low = middle + 1; else high = middle;
  }
  return low;
}

// Codes of one feature (y), as (row, feature), from columns that start at places[y] of `values`, rows `step` apart. Where
// a feature is categorical, a value that is none of its `categories` (NaN: the feature is not) is MISSING. Edges and
// categories are (feature, 256).
template <typename T>
__device__ void encode_feature(const T* values, const i64* places, i64 step, i64 n, const double* edges,
                               const int* n_edges, const double* categories, const int* features, i64 stride,
                               u8* codes) {
  __shared__ double own[BINS], known[BINS];
  int feature = features[blockIdx.y], size = n_edges[feature];
  FOR_THREADS(i, 0, BINS) {
    own[i] = edges[(i64)feature * BINS + i];
    known[i] = categories[(i64)feature * BINS + i];
  }
  __syncthreads();
  bool is_categorical = known[0] == known[0];
  FOR_ALL(row, 0, n) {
    double x = (double)values[places[blockIdx.y] + row * step];
    int code = code_of(x, own, size);
    if (is_categorical && known[code] != x) code = MISSING;
    codes[row * stride + feature] = (u8)code;
  }
}

#define ENCODE(NAME, TYPE)                                                                                              \
  KERNEL NAME(const TYPE* values, const i64* places, i64 step, i64 n, const double* edges, const int* n_edges,         \
              const double* categories, const int* features, i64 stride, u8* codes) {                                  \
    encode_feature(values, places, step, n, edges, n_edges, categories, features, stride, codes);                      \
  }
ENCODE(encode_float32, float)
ENCODE(encode_float64, double)

// Copy the codes of some rows of a table; without `rows`, of its rows from `begin` on, `step` apart. A row has `stride`
// bytes, a multiple of eight.
KERNEL gather_codes(const u64* table, const int* rows, int has_rows, i64 begin, i64 step, i64 n, int stride, u64* out) {
  int width = stride / 8;
  FOR_ALL(i, 0, n * width) {
    i64 row = i / width, word = i % width, from = has_rows ? rows[row] : begin + row * step;
    out[i] = table[from * width + word];
  }
}

// A column of codes for a set of categories: 1 where the code of a feature goes right.
KERNEL mark_set(const u8* goes_right, int feature, int column, i64 n, i64 stride, u8* codes) {
  FOR_ALL(row, 0, n) codes[row * stride + column] = goes_right[codes[row * stride + feature]];
}

struct TreeNode {
  short feature;   // −1 for a leaf
  u8 cut, last;    // codes from cut to last go right
  short left, right;
};

// Add the outputs of trees, one after the other, to the score of each row. Nodes of tree t start at roots[t].
KERNEL score_rows(const u8* codes, i64 n, int stride, int n_trees, const int* roots, const TreeNode* nodes,
                  const double* outputs, double* scores) {
  SHARED(u8, own);  // (code, row of the block): neighbouring threads read neighbouring bytes
  for (i64 base = (i64)blockIdx.x * blockDim.x; base < n; base += (i64)gridDim.x * blockDim.x) {
    int here = (int)(n - base < blockDim.x ? n - base : blockDim.x);
    __syncthreads();
    FOR_THREADS(i, 0, (i64)here * stride) own[(i % stride) * blockDim.x + i / stride] = codes[base * stride + i];
    __syncthreads();
    if (threadIdx.x >= here) continue;
    double score = 0.0;
    for (int tree = 0; tree < n_trees; tree++) {
      int root = roots[tree], at = 0;
      TreeNode node = nodes[root];
      while (node.feature >= 0) {
        u8 code = own[node.feature * blockDim.x + threadIdx.x];
        at = code >= node.cut && code <= node.last ? node.right : node.left;
        node = nodes[root + at];
      }
      score += outputs[root + at];
    }
    scores[base + threadIdx.x] += score;
  }
}
