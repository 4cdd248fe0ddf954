"""Which settings of each method the pictures of attacks.md go through, and what is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ppdm_core.model.score import Score
from studies.risk import ATTACKER, Release, audit_release

ACCURACY = "knn_accuracy"
Point = tuple[float, float, float, float]  # value, low, high, baseline


@dataclass(frozen=True)
class Sweep:
    """One method over one of its settings."""

    at: Callable[[float], Release]
    values: tuple[float, ...]
    axis: str
    scores: tuple[str, ...]  # the strongest attacks on this method, by the name of a score
    is_log: bool = True

    def figures(self) -> dict[str, list[Point | None]]:
        """For each score its points, None where the attack does not apply."""
        attacks = [*dict.fromkeys(name.split(".")[0] for name in self.scores), ACCURACY]
        found = [audit_release(self.at(value), attacks) for value in self.values]
        return {
            name: [told(scores.get(name)) for scores in found] for name in (*self.scores, ACCURACY)
        }


def told(score: Score | None) -> Point | None:
    if score is None:
        return None
    offset = score.baseline if is_excess(score.name) else 0.0
    value, low, high = (round(each - offset, 4) for each in (score.value, score.low, score.high))
    return value, low, high, round(score.baseline - offset, 4)


def is_excess(name: str) -> bool:
    """What also holds for people outside the release is no breach of it."""
    return name.endswith(".inference_rate")


def with_b(method: str, table: str, **fixed: Any) -> Callable[[float], Release]:
    return lambda b: Release(method, {**fixed, "b": b}, table)


def rotated(people: float) -> Release:
    """The same number of people as known records and as a sample."""
    attacker = replace(ATTACKER, known_records=int(people), sample_share=people / 569)
    return Release("random_rotation", {}, "wdbc", attacker)


def mixed(b: float) -> Release:
    answers = {"method": "randomized_response", "gamma": {"attribute": 3}}
    parts = {"numeric": {"method": "additive_noise", "b": b}, "categorical": answers}
    return Release("pipeline", parts, "adult")


LEVELS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # below 1/60 outputs are clamped to a narrow range
SWEEPS: dict[str, Sweep] = {
    "pca_laplace": Sweep(
        with_b("pca_laplace", "pima", components=6, noise_shape="per_component"),
        LEVELS,
        "noise b, as a share of each component's range",
        (
            "record_linkage.rate",
            "shrinkage.breach_rate",
            "membership.true_positive_rate",
            "attribute_inference.inference_rate",
        ),
    ),
    "additive_noise": Sweep(
        with_b("additive_noise", "pima"),
        LEVELS,
        "noise b, as a share of each column's range",
        (
            "record_linkage.rate",
            "shrinkage.breach_rate",
            "membership.true_positive_rate",
            "attribute_inference.inference_rate",
        ),
    ),
    "random_rotation": Sweep(
        rotated,
        (2, 5, 10, 15, 20, 30, 40),
        "people whom the attacker knows",
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
        "directions that are kept",
        (
            "record_linkage.rate",
            "known_pairs.breach_rate",
            "known_records.breach_rate",
            "membership.true_positive_rate",
        ),
        is_log=False,
    ),
    "dct_fuzzy": Sweep(
        with_b("dct_fuzzy", "wdbc", p=0.05),
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
        "dimensions that are kept",
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
        "gamma of each category (more: less noise)",
        ("record_linkage.rate", "attribute_inference.inference_rate"),
    ),
    "pipeline": Sweep(
        mixed,
        LEVELS,
        "noise b on the numbers",
        (
            "record_linkage.rate",
            "attribute_inference.inference_rate",
            "membership.true_positive_rate",
        ),
    ),
}
