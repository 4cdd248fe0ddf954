"""What somebody who knows complete records finds in the sums of parties with other columns.

No party has complete records, and the centre has the sums alone, so that nobody can attack the sums
with the true records. The centre takes its own rows in their place.

Without noise a row is a function of its record: who knows the record knows the row, and shares it
with all persons whose row is equal.

With noise the rows lie farther apart than the records do, so that it would be too easy to find them
again. The centre moves them towards their mean, until their covariance is that of the coefficients
without noise, adds fresh noise of the published distribution, and looks for each among the results,
as somebody who knows the coefficients of all records and their order looks for them in the sums.
The moved rows still hold some of the first noise in place of what records share, such as equal
values: on public tables the figure is about the true one, or above it (a test compares both). This
is a measurement, and no proof: points that are as far from each other as they can be, in one
column, are found more often than the figure says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.audit.certifiable import count_judged_scores
from ppdm_core.audit.label_risk import compute_label_chances
from ppdm_core.audit.scores import Figures, make_score
from ppdm_core.audit.simulation import limit_targets
from ppdm_core.metrics.rate import Rate
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.attacker import AttackerView, RecordSet
from ppdm_core.model.policy import Policy
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.model.score import Score
from ppdm_core.numerics.mean_limits import mean_interval
from ppdm_core.numerics.noise_distributions import LAPLACE, Logistic

METRIC = Rate()
LINKAGE_RATE = f"{RecordLinkage.name}.{METRIC.name}"  # the name of the score
STORY = "Somebody who knows complete records looks for them in the sums of all parties."


@dataclass(frozen=True)
class SumNoise:
    """The noise in a sum: that of each party, of one scale."""

    scale: float
    parties: int

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Return noise of this distribution."""
        found: Floats = rng.laplace(0.0, self.scale, (self.parties, *shape)).sum(axis=0)
        return found

    @property
    def variance(self) -> float:
        return self.parties * LAPLACE.variance * self.scale**2

    @property
    def logistic_scale(self) -> float:
        """Scale of logistic noise of the same variance, whose shape is that of a few parties."""
        return math.sqrt(self.variance / Logistic().variance)


def score_joined_rows(
    Y: Floats, label: Codes, noise: SumNoise | None, policy: Policy, rng: np.random.Generator
) -> Score:
    """Return the share of the persons whose row is found by their complete record."""
    if noise is None:
        values = {"equal rows": share_equal_rows(Y, label)}
        targets = np.arange(len(Y))
    else:
        targets = rng.permutation(len(Y))[: limit_targets(len(Y))]
        X = remove_noise(Y, noise.variance)
        known = RecordSet(X[targets], np.empty((len(targets), 0), np.int32), label[targets])
        found = link_records(known, X + noise.draw(X.shape, rng), label, noise, rng)
        values = {name: METRIC.each(link, targets) for name, link in found.items()}
    worst = max(values, key=lambda name: float(values[name].mean()))
    value, interval = float(values[worst].mean()), partial(mean_interval, values[worst])
    figures = Figures(
        values=[value],
        n=len(targets),
        baseline=float(np.mean(compute_label_chances(label[targets], label))),
        value_on=lambda rows: float(values[worst][rows].mean()),
        units=len(targets),
        interval=(lambda level: (value, value)) if noise is None else interval,
        candidate=worst,
        choices=len(values),
    )
    return make_score(
        METRIC,
        LINKAGE_RATE,
        figures,
        level=policy.level,
        judged=count_judged_scores(policy),
        rng=rng,
        story=STORY,
        epsilon=policy.attacker.epsilon,
    )


def share_equal_rows(Y: Floats, label: Codes) -> Floats:
    """Return for each person the chance to pick its row among the rows equal to its own."""
    rows = np.column_stack([Y + 0.0, label.astype(np.float64)])
    _, which, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / counts[which.reshape(-1)])


def remove_noise(Y: Floats, variance: float) -> Floats:
    """Return rows moved towards their mean, with a covariance that is smaller by the noise."""
    mean = Y.mean(axis=0)
    found, axes = np.linalg.eigh(np.atleast_2d(np.cov(Y, rowvar=False)))
    share = np.maximum(found - variance, 0.0) / np.maximum(found, variance)
    moved: Floats = mean + (Y - mean) @ (axes * np.sqrt(share)) @ axes.T
    return moved


def describe_sums(Y: Floats, noise: SumNoise | None) -> tuple[PublicParameters, Schema]:
    """Return what is public about sums, and their columns in place of those of records."""
    names = tuple(f"coefficient_{i + 1}" for i in range(Y.shape[1]))
    ends = zip(names, Y.min(axis=0).tolist(), Y.max(axis=0).tolist(), strict=True)
    public = PublicParameters(
        method="sums",
        space="components",
        columns=names,
        centre=np.zeros(len(names)),
        loadings=np.eye(len(names)),
    )
    if noise is not None:
        scales = np.full(len(names), noise.logistic_scale)
        public = replace(public, law=Logistic.name, scales=scales)
    return public, Schema(tuple(Numeric(*each) for each in ends))


def link_records(
    persons: RecordSet, Y: Floats, label: Codes, noise: SumNoise, rng: np.random.Generator
) -> Mapping[str, Ints]:
    """Return the rows that each candidate of the attack finds for persons with known coefficients.

    ``persons`` hold coefficients, in the order of the columns of ``Y``.
    """
    order = rng.permutation(len(Y))  # solvers favour the identity on ties
    public, schema = describe_sums(np.concatenate([persons.X, Y]), noise)
    view = AttackerView(
        Y=Y[order],
        label=label[order],
        public=public,
        schema=schema,
        epsilon=0.0,
        targets=persons,
        reconstructions={"sums": Y[order]},
    )
    found = RecordLinkage().attack(view, rng).candidates
    return {name: np.where(link >= 0, order[link], -1) for name, link in found.items()}
