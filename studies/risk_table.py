"""Prints the table of attacks.md: the most that each attack got from each method.

    python -m studies.risk_table [SETTING ...]      # from the root of the project

Every setting is audited on three tables (see studies/risk.py), which takes about a minute each.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ppdm_core.attacks import ATTACKS
from ppdm_core.model.attacker import Goal
from ppdm_core.model.score import Score
from studies.risk import Release, audit_release

NUMBERS = ("pima", "pendigits_train", "wdbc")  # tables for methods of numbers
WITH_WORDS = ("adult", "breast_cancer_wisconsin", "pima")  # and for those that take categories
MARGIN = 0.01  # by which the lower end of an interval lies above the baseline
ANSWERS = {"method": "randomized_response", "gamma": {"attribute": 30}}

# Little noise, or none, and then more of it.
WEAK: dict[str, Mapping[str, Any]] = {
    "random_rotation": {},
    "random_projection": {"components": 0.5},
    "dct_fuzzy": {"b": 0.05, "p": 0.1},
    "nonmetric_mds": {"dimensions": 0.75, "landmarks": 300},
    "kde_resample": {"bandwidth": "corrected"},
    "pca_laplace": {"components": 0.8, "b": 0.02, "noise_shape": "per_component"},
    "additive_noise": {"b": 0.05},
    "randomized_response": {"gamma": {"attribute": 30}},
    "pipeline": {"numeric": {"method": "additive_noise", "b": 0.05}, "categorical": ANSWERS},
}
NOISIER: dict[str, Mapping[str, Any]] = {
    "pca_laplace": {"components": 1, "gamma": {"record": 1000}},
    "additive_noise": {"b": 0.5},
    "randomized_response": {"gamma": {"attribute": 3}},
}
SHORT = {
    "random_rotation": "rotation",
    "random_projection": "projection",
    "dct_fuzzy": "DCT",
    "nonmetric_mds": "NMDS",
    "kde_resample": "KDE",
    "pca_laplace": "PCA",
    "additive_noise": "additive",
    "randomized_response": "answers",
    "pipeline": "pipeline",
}
MEASURED: dict[Goal, str] = {
    "reconstruct": "breach_rate",
    "norms": "norm_breach_rate",
    "link": "rate",
    "source": "source_rate",
    "member": "true_positive_rate",
    "infer": "inference_rate",
    "pair": "pair_rate",
    "single_out": "singling_rate",
}
LINES = (*ATTACKS, "transform_inverse.leaked", "record_linkage.partial")  # and scenarios


def tables_for(method: str) -> tuple[str, ...]:
    return WITH_WORDS if method in ("randomized_response", "pipeline") else NUMBERS


def key_of(line: str) -> str:
    """The name of the score that tells most about an attack, or about a scenario of it."""
    return f"{line}.{MEASURED[ATTACKS[line.split('.')[0]].goal]}"


def is_broken(score: Score) -> bool:
    return score.low > score.baseline + MARGIN


def cell(scores: Iterable[Score]) -> str:
    """The largest excess over the baseline, in percent; bold if it is surely there."""
    found = list(scores)
    if not found:
        return "-"
    text = f"{100 * max(0.0, *(score.value - score.baseline for score in found)):.0f}"
    return f"**{text}**" if any(map(is_broken, found)) else text


def column(method: str, parameters: Mapping[str, Any]) -> dict[str, str]:
    found = [
        audit_release(Release(method, parameters, table), list(ATTACKS))
        for table in tables_for(method)
    ]
    return {
        line: cell(scores[key_of(line)] for scores in found if key_of(line) in scores)
        for line in LINES
    }


def as_text(columns: Mapping[str, Mapping[str, str]]) -> str:
    heads = ["attack", *columns]
    lines = [heads, ["---"] * len(heads)]
    lines += [[f"`{line}`", *(each[line] for each in columns.values())] for line in LINES]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main(names: Sequence[str]) -> None:
    columns = {}
    for words, settings in (("", WEAK), (", noisier", NOISIER)):
        for method, parameters in settings.items():
            if not names or method + words in names:
                columns[SHORT[method] + words] = column(method, parameters)
    print(as_text(columns))


if __name__ == "__main__":
    main(sys.argv[1:])
