"""A contestant for tests: it remembers what it trained on, and trains in no time."""

from dataclasses import dataclass, field

import numpy as np

from qbdt.studies.comparison.contestants import Contestant
from qbdt.studies.trainers import Trained


@dataclass
class Witness:
    """Trains on the mean of one feature; refuses to score events that it has trained on, if their numbers say so."""

    numbered: bool = True
    trainings: list[int] = field(default_factory=list)
    told: list[list[str]] = field(default_factory=list)

    def fit(self, data, settings, seed):
        seen = set().union(*(_ids(sample.events) for sample in data.samples))
        self.trainings.append(len(seen))
        self.told.append([source.name for source in data.systematics])
        feature = data.features[settings["feature"]]
        signal, background = (float(np.mean(sample.events.column(feature))) for sample in data.samples)

        def score(events):
            assert not self.numbered or not seen & _ids(events), "scored by a model that has seen it"
            return np.asarray(np.sign(signal - background) * events.column(feature) + 1e-6 * len(seen))

        return Trained(score)

    def contestant(self, name="witness", method=""):
        return Contestant(name, self.fit, tuple({"feature": i} for i in range(3)), method=method)


def _ids(events):
    return set(events.identifier("event_number").tolist())
