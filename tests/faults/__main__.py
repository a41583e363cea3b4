"""All faults at all operations: `python -m tests.faults [CASE …]`; prints a table, and ends with 1 on a finding."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.faults.cases import CASES
from tests.faults.runner import build_shim, run_case


def main() -> int:
    """Try the cases one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--every", type=int, default=1, help="try one operation in so many")
    parser.add_argument("--record", type=Path, help="folder that keeps trials: the same command goes on where it ended")
    options, n_wrong = parser.parse_args(), 0
    heads = " ".join(f"{head:>7}" for head in ("faults", "killed", "refused", "went on"))
    print(f"{'command':18} operations {heads}  wrong", flush=True)
    if options.record is not None:
        options.record.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        shim = build_shim(Path(folder))
        for name in options.cases:
            record = None if options.record is None else options.record / f"{name.replace(', ', '-')}.jsonl"
            operations, trials = run_case(shim, name, options.every, record)
            exits = [trial["exit"] for trial in trials]
            wrong = [trial for trial in trials if trial["wrong"]]
            counts = (len(operations), len(trials), exits.count(-9), exits.count(2), exits.count(0), len(wrong))
            print(f"{name:18} {counts[0]:10} " + " ".join(f"{count:7}" for count in counts[1:-1]) + f" {counts[-1]:6}")
            for trial in wrong:
                print(f"  {trial['operation']} {trial['number']}, {trial['fault']}: {trial['wrong']}")
            sys.stdout.flush()
            n_wrong += len(wrong)
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
