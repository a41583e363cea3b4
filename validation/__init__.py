"""Comparisons with published numbers and with statistics itself; each prints a table, and fails on a missed limit."""
