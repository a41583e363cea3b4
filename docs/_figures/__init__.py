"""The figures of README and documentation: `make figures` draws them anew into docs/images.

In: the tables of docs/physics-results.md, and small runs on events that come with qbdt. Out: SVG files that are
committed, so that pages show them without a run.
"""
