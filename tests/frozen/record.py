"""Write hashes.json anew: `python -m tests.frozen.record`, where results are meant to change.

With words, only cases whose names hold one of them: `python -m tests.frozen.record "published growth"`. Keys that have
come to files since the last recording of everything are then still left out.
With --models the committed model files are trained anew first: only for a new kind of model.
"""

import json
import sys
from typing import Any

from tests.frozen.cases import (
    OLD_MODELS,
    cluster,
    computed,
    exports,
    old_scores,
    on_cluster,
    runs,
    scores,
    trainings,
    write_old_models,
)
from tests.frozen.hashes import FILE, KEYS, LearnedKeys, fingerprint


def main(words: list[str]) -> None:
    """Compute and write."""
    if "--models" in words:
        write_old_models()
    wanted = [word for word in words if word != "--models"]
    known: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["cases"] if wanted else {}
    if not wanted:
        KEYS.update({kind: LearnedKeys() for kind in KEYS})
    found: dict[str, Any] = {}
    with cluster() as client:
        for name, make in {**trainings(), **on_cluster(client), **exports(), **runs(), **scores()}.items():
            if wanted and not any(word in name for word in wanted):
                found[name] = known[name]
                continue
            found[name] = computed(make)
            if known.get(name) != found[name]:
                print(f"changed: {name}")
    first = {name: old_scores(name)[:8].tolist() for name in OLD_MODELS}
    keys = {kind: sorted(known) for kind, known in KEYS.items()}
    content = {"fingerprint": fingerprint(), "first scores": first, "keys": keys, "cases": found}
    FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
