"""The settings of each method that the pictures of attacks.md vary, and the scores they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ppdm_core.model.score import Score
from studies.public_table_audit import ATTACKER, Release, audit_release

ACCURACY = "knn_accuracy"
Point = tuple[float, float, float, float]  # value, low, high, baseline


@dataclass(frozen=True)
class Sweep:
    """One method over a range of one of its settings."""

    make_release: Callable[[float], Release]
    values: tuple[float, ...]
    axis: str
    scores: tuple[str, ...]  # the strongest attacks on this method, by the name of a score
    is_log: bool = True

    def measure(self) -> dict[str, list[Point | None]]:
        """Return the points of each score, None where the attack does not apply."""
        attacks = [*dict.fromkeys(name.split(".")[0] for name in self.scores), ACCURACY]
        found = [audit_release(self.make_release(value), attacks) for value in self.values]
        return {
            name: [make_point(scores.get(name)) for scores in found]
            for name in (*self.scores, ACCURACY)
        }


def make_point(score: Score | None) -> Point | None:
    """Return the rounded figures of a score, less the baseline if only the excess is a breach."""
    if score is None:
        return None
    offset = score.baseline if is_excess(score.name) else 0.0
    value, low, high = (round(each - offset, 4) for each in (score.value, score.low, score.high))
    return value, low, high, round(score.baseline - offset, 4)


def is_excess(name: str) -> bool:
    """Return whether only the excess over the baseline is a breach.

    What an attacker infers equally well about persons outside the release is no breach of it.
    """
    return name.endswith(".inference_rate")


def vary_noise(method: str, table: str, **fixed: Any) -> Callable[[float], Release]:
    """Return a function from the noise scale ``b`` to a release."""
    return lambda b: Release(method, {**fixed, "b": b}, table)


def make_rotation(known: float) -> Release:
    """Return a rotated release; the attacker has as many known records as sampled ones."""
    attacker = replace(ATTACKER, known_records=int(known), sample_share=known / 569)
    return Release("random_rotation", {}, "wdbc", attacker)


def make_pipeline(b: float) -> Release:
    """Return a release of numbers and categories; ``b`` is the noise on the numbers."""
    responses = {"method": "randomized_response", "gamma": {"attribute": 3}}
    parts = {"numeric": {"method": "additive_noise", "b": b}, "categorical": responses}
    return Release("pipeline", parts, "adult")


NOISE_LEVELS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # below 1/60 outputs are clamped to a narrow range
SWEEPS: dict[str, Sweep] = {
    "pca_laplace": Sweep(
        vary_noise("pca_laplace", "pima", components=6, noise_shape="per_component"),
        NOISE_LEVELS,
        "noise b, as a share of each component's range",
        (
            "record_linkage.rate",
            "shrinkage.breach_rate",
            "membership.true_positive_rate",
            "attribute_inference.inference_rate",
        ),
    ),
    "additive_noise": Sweep(
        vary_noise("additive_noise", "pima"),
        NOISE_LEVELS,
        "noise b, as a share of each column's range",
        (
            "record_linkage.rate",
            "shrinkage.breach_rate",
            "membership.true_positive_rate",
            "attribute_inference.inference_rate",
        ),
    ),
    "random_rotation": Sweep(
        make_rotation,
        (2, 5, 10, 15, 20, 30, 40),
        "records that the attacker knows",
        (
            "known_pairs.breach_rate",
            "known_records.breach_rate",
            "known_sample_pca.breach_rate",
            "trilateration.breach_rate",
            "record_linkage.rate",
        ),
        is_log=False,
    ),
    "random_projection": Sweep(
        lambda components: Release("random_projection", {"components": int(components)}, "pima"),
        (1, 2, 3, 4, 5, 6, 7, 8),
        "number of components",
        (
            "record_linkage.rate",
            "known_pairs.breach_rate",
            "known_records.breach_rate",
            "membership.true_positive_rate",
        ),
        is_log=False,
    ),
    "dct_fuzzy": Sweep(
        vary_noise("dct_fuzzy", "wdbc", p=0.05),
        (0.05, 0.1, 0.2, 0.3, 0.5, 0.7),
        "share b of a record's energy that may be lost",
        (
            "record_linkage.rate",
            "column_order.breach_rate",
            "known_pairs.breach_rate",
            "membership.true_positive_rate",
        ),
        is_log=False,
    ),
    "kde_resample": Sweep(
        lambda floor: Release("kde_resample", {"bandwidth": "floor", "floor": floor}, "pima"),
        (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9),
        "least bandwidth, as a share of each column's range",
        (
            "record_linkage.rate",
            "source_record.source_rate",
            "kernel_support.true_positive_rate",
            "membership.true_positive_rate",
        ),
        is_log=False,
    ),
    "nonmetric_mds": Sweep(
        lambda s: Release("nonmetric_mds", {"dimensions": int(s), "landmarks": 300}, "pima"),
        (1, 2, 3, 4, 5, 6, 7),
        "number of dimensions",
        (
            "record_linkage.rate",
            "known_pairs.breach_rate",
            "known_records.breach_rate",
            "trilateration.breach_rate",
            "membership.true_positive_rate",
        ),
        is_log=False,
    ),
    "randomized_response": Sweep(
        lambda gamma: Release("randomized_response", {"gamma": {"attribute": gamma}}, "adult"),
        (1.5, 3.0, 10.0, 30.0, 100.0, 1000.0),
        "gamma of each column (larger: less noise)",
        ("record_linkage.rate", "attribute_inference.inference_rate"),
    ),
    "pipeline": Sweep(
        make_pipeline,
        NOISE_LEVELS,
        "noise b on the numbers",
        (
            "record_linkage.rate",
            "attribute_inference.inference_rate",
            "membership.true_positive_rate",
        ),
    ),
}
