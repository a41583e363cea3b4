"""Analyses that measure several strengths, beside other regions, or at another working point."""
