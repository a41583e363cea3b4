"""The paper's algorithm written down as plainly as possible: lists of events, every cut tried, floats."""

from typing import Any

import numpy as np

from qbdt.statistics import background_variance, significance


def variance(b, deltas, squares):
    return float(background_variance(b, deltas) if deltas else 0.0) + squares


class NaiveQBDT:
    """Signal, background and variations (pairs up, down or (up, None)) as (X, weight); cuts at given edges."""

    def __init__(self, signal, background, variations, edges, n_leaves, mc_stat=False):
        self.samples = [signal, background] + [side for pair in variations for side in pair if side is not None]
        self.samples = [(X, np.array(w, dtype=float)) for X, w in self.samples]
        self.pairs = [(up is not None, down is not None) for up, down in variations]
        self.edges, self.n_leaves, self.mc_stat = edges, n_leaves, mc_stat

    def normalise(self):
        factors = [1 / w.sum() for _, w in self.samples[:2]]
        self.samples = [(X, w * factors[min(i, 1)]) for i, (X, w) in enumerate(self.samples)]

    def node(self, masks):
        sums = [w[m].sum() for (_, w), m in zip(self.samples, masks, strict=True)]
        s, b, rest = sums[0], sums[1], sums[2:]
        if b <= 1e-15:
            return None
        deltas, i = [], 0
        for _, down in self.pairs:
            deltas.append((rest[i] - rest[i + 1]) / 2 if down else rest[i] - b)
            i += 2 if down else 1
        squares = float((self.samples[1][1][masks[1]] ** 2).sum()) if self.mc_stat else 0.0
        v = variance(b, deltas, squares)
        return {"s": s, "b": b, "v": v, "q": float(significance(s, b, v)), "p": s / (s + b + v), "masks": masks}

    def best(self, node):
        found: tuple[Any, Any] = (0.0, None)
        for feature, edges in enumerate(self.edges):
            for edge in edges:
                below = [X[:, feature] < edge for X, _ in self.samples]
                left = self.node([m & c for m, c in zip(node["masks"], below, strict=True)])
                right = self.node([m & ~c for m, c in zip(node["masks"], below, strict=True)])
                if left and right and left["q"] + right["q"] - node["q"] > found[0] + 1e-13:
                    found = (left["q"] + right["q"] - node["q"], (feature, edge, left, right))
        return found

    def tree(self):
        self.normalise()
        leaves = [self.node([np.ones(len(w), bool) for _, w in self.samples])]
        cuts = []
        while len(leaves) < self.n_leaves:
            options = [self.best(leaf) for leaf in leaves]
            i = int(np.argmax([gain for gain, _ in options]))
            if options[i][1] is None:
                break
            feature, edge, left, right = options[i][1]
            cuts.append((feature, edge))
            leaves[i : i + 1] = [left, right]
        weight = sum(leaf["q"] for leaf in leaves)
        for i, (_, w) in enumerate(self.samples):
            for leaf in leaves:
                w[leaf["masks"][i]] *= np.exp((-1 if i == 0 else 1) * leaf["p"] * weight)
        return cuts, leaves, weight
