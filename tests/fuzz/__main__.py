"""Fuzz for hours: `python -m tests.fuzz --minutes 60 [TARGET …]`; prints a table, and ends with 1 on a finding."""

import argparse
import itertools
import sys
import time

from tests.fuzz.runner import Finding, try_input
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Run all targets in turns until time is up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input: another gives other inputs")
    options = parser.parse_args()
    end, tried = time.monotonic() + 60 * options.minutes, dict.fromkeys(options.targets, 0)
    findings: dict[str, Finding] = {}
    for number in itertools.count(options.first):
        if time.monotonic() > end:
            break
        for name in options.targets:
            tried[name] += 1
            if (finding := try_input(name, number)) is not None and finding.reason not in findings:
                findings[finding.reason] = finding
                print(finding, flush=True)
    for name, count in tried.items():
        print(f"{name:12} {count:9} inputs  {sum(f.target == name for f in findings.values())} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
