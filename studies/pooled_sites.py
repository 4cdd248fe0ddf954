"""The loss of a classifier and the error of the density when L sites resample and pool their rows.

Three quarters of the records are split between L sites, each site resamples its own classes, and
classifiers are trained on the pool. ``phi`` is their error on the other records minus that of the
same classifier on the original records (Tan, Ng 2007). ``DAPL`` is the distance between the density
that a site draws from and that of its class, if classes are normal (plug-in) or for held-out
records, as the mean over sites. `studies/number_of_sites.py` repeats the tables of the paper.
"""

from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import ReleaseComparison
from ppdm_core.metrics.dapl_held_out import DaplHeldOut
from ppdm_core.metrics.dapl_plug_in import DaplPlugIn
from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.kde_resample import KdeResample

DISTANCES = (DaplPlugIn(), DaplHeldOut())
TRAINING_SHARE = 0.75


def measure_pool(
    X: Floats, label: Codes, sites: int, seed: int, bandwidth: str = "paper"
) -> tuple[float, float, float, float]:
    """Return phi of naive Bayes and of 5-NN, and both DAPLs, for one random split."""
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    train, test = np.split(order, [round(TRAINING_SHARE * len(X))])
    low, high = X.min(axis=0), X.max(axis=0)
    scaled = (X - low) / np.where(high > low, high - low, 1.0)
    schema = Schema(
        tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(X.shape[1])),
        label=Categorical("label", tuple(map(str, range(int(label.max()) + 1)))),
    )
    method = KdeResample(bandwidth=bandwidth, lonely="merge", scale="none")
    rows, labels, distances = [], [], []
    for part in np.array_split(train, sites):
        table = ArrayRows(schema, scaled[part], label[part].astype(np.int32))
        fitted = method.fit(table)
        noise = Noise(rng.bytes(32))
        released = method.sanitize(table, noise, fitted)
        blocks = list(released.rows.blocks())
        Y = np.concatenate([block.X for block in blocks])
        rows.append(Y)
        labels.append(np.concatenate([block.label for block in blocks]))
        compared = ReleaseComparison(
            table.whole.X, table.whole.label, Y, released.public, source=np.zeros(len(Y), dtype=int)
        )
        distances.append([each.measure(compared).value for each in DISTANCES])
    pool, classes = np.concatenate(rows), np.concatenate(labels)
    errors = []
    for model in (GaussianNB(), KNeighborsClassifier(5)):
        before = model.fit(scaled[train], label[train]).score(scaled[test], label[test])
        after = model.fit(pool, classes).score(scaled[test], label[test])
        errors.append(before - after)
    plug_in, held_out = np.mean(distances, axis=0)
    return errors[0], errors[1], float(plug_in), float(held_out)
