"""Comparisons with published numbers and files."""
