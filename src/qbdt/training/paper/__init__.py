"""The method of the QBDT paper: trees split nodes, are weighted and re-weight events by the expected significance Q.

In: rows with fixed-point weights (`weighted_rows`) and the channels that make s, b and each Δ_k (`channels`). Out:
trees with weights, one after the other (`boosting`). A split is judged by ΔQ (`criterion`).
"""

__all__: list[str] = []
