"""`python -m qbdt` is the same as `qbdt`."""

from qbdt.cli import main

main()
