"""Compiled loops of the two methods: split scans, residuals, weights. They see arrays only."""

__all__: list[str] = []
