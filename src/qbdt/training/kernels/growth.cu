// A whole tree grown on a device without asking anybody: of the paper's method without systematic sources, judged by Q
// of s and b, or of the profiled method, judged by N²/(D + λ). Both have two sums of integers: here s is s or N, b is b
// or D.
//
// After each division the histogram of the smaller child is summed (rows.cu) and a scan finds the best cut of both
// children and the node to divide next. Gains N²/(D + λ) are those of the CPU to the last bit. Those in Q are so up to
// the rounding of logarithms, so every decision is taken with a margin: where two choices are closer than that, the tree
// is marked, and grown again by the CPU's decisions. All integers are exact.

#define MARGIN 1e-10  // a hundred thousand times what logarithms are rounded by
#define INFINITE __longlong_as_double(0x7ff0000000000000ll)
#define SERIES_BELOW 0.1
#define SERIES_TERMS 18

enum State { NODE, FEATURE, LEFT, RIGHT, SMALLER, N_NODES, N_LEFT, FIRST_NEW, SECOND_NEW, IS_MARKED, N_SCANNED };
// How cuts are judged: in Q where `is_exact` is 0; units of s and b (of Q: those of the root), λ, and least D.
struct Judge {
  int is_exact;
  double of_s, of_b, ridge, least;
};

enum Record { SPLIT_FEATURE, SPLIT_CUT, SPLIT_MISSING, LEFT_SIGNAL, LEFT_BACKGROUND, LEFT_CHILD, SIGNAL, BACKGROUND, GAIN_BITS, FIELDS };
#define NONE_MISSING 2

struct Nodes {
  i64* record;     // (node, field)
  double* gain;    // of the best cut
  double* margin;  // by which gains must differ
  int* depth;
  int* is_open;
};

struct Cut {
  double gain, second;  // second: the largest gain of a cut with other yields
  int key;              // missing values left × 256 + cut, −1 for no cut
  i64 s, b;             // yields left of it
};

// Q of one region (eq:Q0), as `significance_value`.
__device__ double significance(double s, double b) {
  if (s <= 0.0) return 0.0;
  double u = s / b;
  if (u < SERIES_BELOW) {
    double total = 0.0, power = 1.0;
    for (int n = 0; n < SERIES_TERMS; n++) {
      total += power / ((n + 1.0) * (n + 2.0));
      power *= -u;
    }
    return 2.0 * s * u * total;
  }
  return 2.0 * ((s + b) * log1p(u) - s);
}

// N²/(D + λ), or −1 where the denominator is too small for a node, as `pair_value`.
__device__ double pair_value(double n, double d, double ridge, double least) {
  return d < least || d + ridge <= 0.0 ? -1.0 : n * n / (d + ridge);
}

// Value of one side of a cut, or −1 where such a node is not allowed.
__device__ double side_value(i64 s, i64 b, Judge judge) {
  if (judge.is_exact) return pair_value(s * judge.of_s, b * judge.of_b, judge.ridge, judge.least);
  if (b <= 0) return -1.0;
  return s <= 0 ? 0.0 : significance(s * judge.of_s, b * judge.of_b);
}

// Value of a whole node.
__device__ double node_value(i64 s, i64 b, Judge judge) {
  if (!judge.is_exact) return significance(s * judge.of_s, b * judge.of_b);
  double value = pair_value(s * judge.of_s, b * judge.of_b, judge.ridge, -INFINITE);
  return value > 0.0 ? value : 0.0;
}

__device__ Cut no_cut() {
  Cut cut;
  cut.gain = cut.second = -INFINITE;
  cut.key = -1;
  cut.s = cut.b = 0;
  return cut;
}

// The better of two cuts of a node of yields s and b, of equals the one with the lower key. Cuts with the same yields,
// or with both sides exchanged, have the same gain to the last bit, here as on the CPU.
__device__ Cut better(Cut one, Cut other, i64 s, i64 b) {
  bool is_other = other.key >= 0 && (one.key < 0 || other.gain > one.gain || (other.gain == one.gain && other.key < one.key));
  Cut best = is_other ? other : one, lost = is_other ? one : other;
  double second = lost.second > best.second ? lost.second : best.second;
  bool is_same = (lost.s == best.s && lost.b == best.b) || (lost.s == s - best.s && lost.b == b - best.b);
  if (lost.key >= 0 && !is_same && lost.gain > second) second = lost.gain;
  best.second = second;
  return best;
}

// Running sums of 256 numbers, by 32 threads that take eight each.
__device__ void accumulate(i64* bins, i64* partial) {
  FOR_THREADS(t, 0, 32) {
    i64 sum = 0;
    for (int k = 0; k < 8; k++) sum += bins[8 * t + k];
    partial[t] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    i64 sum = 0;
    for (int t = 0; t < 32; t++) { i64 own = partial[t]; partial[t] = sum; sum += own; }
  }
  __syncthreads();
  FOR_THREADS(t, 0, 32) {
    i64 sum = partial[t];
    for (int k = 0; k < 8; k++) { sum += bins[8 * t + k]; bins[8 * t + k] = sum; }
  }
  __syncthreads();
}

// Begin a tree, with empty histograms.
KERNEL begin_tree(int n_leaves, i64 size, i64* histograms, int* state, i64* record, double* gain, double* margin,
                  int* depth, int* is_open) {
  FOR_ALL(i, 0, size) histograms[i] = 0;
  if (blockIdx.x > 0) return;
  FOR_THREADS(node, 0, 2 * n_leaves - 1) {
    for (int field = 0; field < FIELDS; field++) record[FIELDS * node + field] = 0;
    record[FIELDS * node + LEFT_CHILD] = -1;
    depth[node] = is_open[node] = 0;
  }
  if (threadIdx.x > 0) return;
  state[NODE] = state[SMALLER] = state[SECOND_NEW] = -1;
  state[FIRST_NEW] = state[IS_MARKED] = state[N_SCANNED] = 0;
  state[N_NODES] = 1;
  state[N_LEFT] = n_leaves - 1;
}

// Write down the best cut of a new node, and whether it may be divided.
__device__ void describe_node(int node, const Cut* cuts, const int* features, int n_features, int max_depth, Judge judge,
                              int* state, Nodes nodes) {
  i64* own = nodes.record + (i64)FIELDS * node;
  Cut best = no_cut();
  int feature = -1;
  for (int f = 0; f < n_features; f++) {
    Cut other = cuts[f];
    if (other.key < 0) continue;
    other.key += f << 10;
    best = better(best, other, own[SIGNAL], own[BACKGROUND]);
    if (best.key == other.key) feature = features[f];
  }
  int option = best.key >> 8 & 3;
  own[SPLIT_FEATURE] = feature;
  own[SPLIT_CUT] = best.key & 255;
  own[SPLIT_MISSING] = option;
  own[LEFT_SIGNAL] = best.s;
  own[LEFT_BACKGROUND] = best.b;
  nodes.gain[node] = best.gain;
  own[GAIN_BITS] = __double_as_longlong(best.gain);
  double s = own[SIGNAL] * judge.of_s, b = own[BACKGROUND] * judge.of_b;
  double size = fabs(s) + fabs(b) + node_value(own[SIGNAL], own[BACKGROUND], judge) + (feature < 0 ? 0.0 : fabs(best.gain));
  double margin = judge.is_exact ? 0.0 : MARGIN * size;
  nodes.margin[node] = margin;
  bool may = feature >= 0 && nodes.depth[node] < max_depth;
  nodes.is_open[node] = may && best.gain > 0.0;
  // A gain of exactly zero is that of cuts without signal on either side: the node stays a leaf whichever is first.
  if (!judge.is_exact && may && best.gain != 0.0 && best.gain > -margin && (best.gain < margin || best.gain - best.second < margin))
    state[IS_MARKED] = 1;
}

// Choose the open node of the largest gain, of equals the first, and say how to divide it. Gains of nodes are
// `known`, −∞ for those that are not open, where they are not too many; reading them one after the other from far away
// memory took longer than all else.
__device__ void choose_node(Judge judge, int* state, const double* known, Nodes nodes) {
  int chosen = -1, n = state[N_NODES];
  double most = -INFINITE;
  for (int node = 0; node < n; node++) {
    double gain = known ? known[node] : nodes.is_open[node] ? nodes.gain[node] : -INFINITE;
    if (gain > most) {
      most = gain;
      chosen = node;
    }
  }
  state[SMALLER] = -1;
  state[NODE] = state[N_LEFT] > 0 ? chosen : -1;
  state[FIRST_NEW] = state[SECOND_NEW] = -1;
  if (state[NODE] < 0) return;
  for (int node = 0; node < n && !judge.is_exact; node++)
    if (node != chosen && nodes.is_open[node] &&
        nodes.gain[chosen] - nodes.gain[node] < nodes.margin[chosen] + nodes.margin[node])
      state[IS_MARKED] = 1;
  i64* own = nodes.record + (i64)FIELDS * chosen;
  int left = n, right = left + 1;
  i64 *one = own + (i64)FIELDS * (left - chosen), *other = one + FIELDS;
  one[SIGNAL] = own[LEFT_SIGNAL];
  one[BACKGROUND] = own[LEFT_BACKGROUND];
  other[SIGNAL] = own[SIGNAL] - own[LEFT_SIGNAL];
  other[BACKGROUND] = own[BACKGROUND] - own[LEFT_BACKGROUND];
  one[LEFT_CHILD] = other[LEFT_CHILD] = -1;
  own[LEFT_CHILD] = left;
  state[FEATURE] = (int)own[SPLIT_FEATURE];
  state[LEFT] = state[FIRST_NEW] = left;
  state[RIGHT] = state[SECOND_NEW] = right;
  state[N_NODES] += 2;
  state[N_LEFT] -= 1;
  nodes.is_open[chosen] = nodes.is_open[left] = nodes.is_open[right] = 0;
  nodes.depth[left] = nodes.depth[right] = nodes.depth[chosen] + 1;
}

// Which codes go right where the chosen node is divided, by all threads of a block.
__device__ void direct_codes(Judge judge, const int* state, const i64* record, u8* goes_right) {
  if (state[NODE] < 0) return;
  const i64* own = record + (i64)FIELDS * state[NODE];
  i64 cut = own[SPLIT_CUT], missing = own[SPLIT_MISSING];
  // Where no value is missing, later ones follow most of the background.
  bool follows = own[LEFT_BACKGROUND] * judge.of_b > (own[BACKGROUND] - own[LEFT_BACKGROUND]) * judge.of_b;
  bool is_left = missing == NONE_MISSING ? follows : missing == 1;
  FOR_THREADS(code, 0, BINS) goes_right[code] = code == MISSING ? !is_left : code >= cut;
}

// Best cut of a feature among those that send missing values one way; `best` has a place for each thread.
__device__ Cut best_cut(i64 left[2][BINS], int n, int option, i64 lost_s, i64 lost_b, i64 s, i64 b, Judge judge,
                        Cut* best) {
  double q = node_value(s, b, judge);
  Cut found = no_cut();
  FOR_THREADS(i, 0, n) {
    Cut one = no_cut();
    one.s = left[0][i] + (option == 1 ? lost_s : 0);
    one.b = left[1][i] + (option == 1 ? lost_b : 0);
    double before = side_value(one.s, one.b, judge), after = side_value(s - one.s, b - one.b, judge);
    if (before < 0.0 || after < 0.0) continue;
    one.gain = judge.is_exact ? before + after : before + after - q;
    one.key = option << 8 | (int)(i + 1);
    found = better(found, one, s, b);
  }
  __syncthreads();
  best[threadIdx.x] = found;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) best[threadIdx.x] = better(best[threadIdx.x], best[threadIdx.x + step], s, b);
    __syncthreads();
  }
  found = best[0];
  if (judge.is_exact) found.gain -= q;  // the CPU compares sums of both sides within a feature
  return found;
}

// Find the best cut of each feature (x) of the new nodes (y); the block that ends last chooses the next node. Histograms
// of nodes are (node, segment, feature, bin), or, without segments, (node, feature, bin, pair); that of the larger child
// is found from its parent's and its sibling's.
KERNEL scan_nodes(int n_features, int n_segments, const int* sides, const int* features, const i64* n_cuts,
                  int max_depth, int n_all, int is_exact, double of_s, double of_b, double ridge, double least,
                  i64* histograms, Cut* cuts, int* state, u8* goes_right, i64* record,
                  double* gain, double* margin, int* depth, int* is_open) {
  Nodes nodes = {record, gain, margin, depth, is_open};
  Judge judge = {is_exact, of_s, of_b, ridge, least};
  __shared__ i64 left[2][BINS], partial[32];
  __shared__ int any_missing, is_last;
  SHARED(Cut, best);
  int node = blockIdx.y == 0 ? state[FIRST_NEW] : state[SECOND_NEW], feature = features[blockIdx.x];
  if (node >= 0) {
    i64 size = (i64)(is_exact ? 2 : n_segments) * n_all * BINS;
    bool is_root = node == 0, is_summed = is_root || node == state[SMALLER];
    i64* own = histograms + node * size;
    const i64 *above = histograms + state[NODE] * size, *other = histograms + state[SMALLER] * size;
    if (threadIdx.x == 0) any_missing = 0;
    __syncthreads();
    FOR_THREADS(bin, 0, BINS) {
      left[0][bin] = left[1][bin] = 0;
      for (int k = 0; k < (is_exact ? 2 : n_segments); k++) {
        i64 at = is_exact ? 2 * ((i64)feature * BINS + bin) + k : ((i64)k * n_all + feature) * BINS + bin;
        i64 value = is_summed ? own[at] : above[at] - other[at];
        if (!is_summed) own[at] = value;
        left[is_exact ? k : sides[k]][bin] += value;
        if (bin == MISSING && value != 0) any_missing = 1;
      }
    }
    __syncthreads();
    i64 lost_s = left[0][MISSING], lost_b = left[1][MISSING];
    __syncthreads();
    accumulate(left[0], partial);
    accumulate(left[1], partial);
    i64 s = left[0][BINS - 1], b = left[1][BINS - 1];
    if (is_root && blockIdx.x == 0 && threadIdx.x == 0) {
      record[SIGNAL] = s;
      record[BACKGROUND] = b;
    }
    if (!is_exact) {
      judge.of_s = 1.0 / (is_root ? s : record[SIGNAL]);
      judge.of_b = 1.0 / (is_root ? b : record[BACKGROUND]);
    }
    int n = (int)n_cuts[feature];
    Cut found = best_cut(left, n, any_missing ? 0 : NONE_MISSING, lost_s, lost_b, s, b, judge, best);
    if (any_missing) found = better(found, best_cut(left, n, 1, lost_s, lost_b, s, b, judge, best), s, b);
    if (threadIdx.x == 0) cuts[blockIdx.y * n_features + blockIdx.x] = found;
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(state + N_SCANNED, 1) == gridDim.x * gridDim.y - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  FOR_THREADS(i, 0, n_features < 64 ? 2 * n_features : 0) best[i] = cuts[i];  // read by many at once
  __syncthreads();
  const Cut* known = n_features < 64 ? best : cuts;
  if (!is_exact) {
    judge.of_s = 1.0 / record[SIGNAL];
    judge.of_b = 1.0 / record[BACKGROUND];
  }
  // One thread for each new node, of different warps.
  FOR_THREADS(i, 0, 64) {
    int own = i == 0 ? state[FIRST_NEW] : i == 32 ? state[SECOND_NEW] : -1;
    if (own >= 0) describe_node(own, known + (i / 32) * n_features, features, n_features, max_depth, judge, state, nodes);
  }
  __syncthreads();
  double* gains = (double*)left;  // what was left of cuts is needed no more
  bool fits = state[N_NODES] <= 2 * BINS;
  FOR_THREADS(i, 0, fits ? state[N_NODES] : 0) gains[i] = is_open[i] ? gain[i] : -INFINITE;
  __syncthreads();
  if (threadIdx.x == 0) {
    state[N_SCANNED] = 0;
    choose_node(judge, state, fits ? gains : nullptr, nodes);
  }
  __syncthreads();
  direct_codes(judge, state, record, goes_right);
}
