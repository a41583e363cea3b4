"""Compiled inner loops over plain arrays: no input or output, no logging, no Python objects.

Each kernel releases the interpreter lock and works on the share of rows or features that it is given. Where shares are
added, the arithmetic is that of integers, so the number of shares never shows in a result. Callers validate.
"""
