"""Print the table of attacks.md: the largest excess of each attack over its baseline, by method.

    python -m studies.attack_table [SETTING ...]      # from the root of the project

Every setting is audited on three tables (see studies/public_table_audit.py). An audit takes about a
minute.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ppdm_core.attacks import ATTACKS
from ppdm_core.model.attacker import Goal
from ppdm_core.model.score import Score
from studies.public_table_audit import Release, audit_release

NUMERIC_TABLES = ("pima", "pendigits_train", "wdbc")  # for methods that take numbers
CATEGORICAL_TABLES = (
    "adult",
    "breast_cancer_wisconsin",
    "pima",
)  # for methods that take categories
MIN_EXCESS = 0.01  # of the lower end of an interval over the baseline
RESPONSES = {"method": "randomized_response", "gamma": {"attribute": 30}}

# Settings with little noise or none, and settings with more noise.
WEAK_SETTINGS: dict[str, Mapping[str, Any]] = {
    "random_rotation": {},
    "random_projection": {"components": 0.5},
    "dct_fuzzy": {"b": 0.05, "p": 0.1},
    "nonmetric_mds": {"dimensions": 0.75, "landmarks": 300},
    "kde_resample": {"bandwidth": "corrected"},
    "pca_laplace": {"components": 0.8, "b": 0.02, "noise_shape": "per_component"},
    "additive_noise": {"b": 0.05},
    "randomized_response": {"gamma": {"attribute": 30}},
    "pipeline": {"numeric": {"method": "additive_noise", "b": 0.05}, "categorical": RESPONSES},
}
NOISIER_SETTINGS: dict[str, Mapping[str, Any]] = {
    "pca_laplace": {"components": 1, "gamma": {"record": 1000}},
    "additive_noise": {"b": 0.5},
    "randomized_response": {"gamma": {"attribute": 3}},
}
COLUMN_TITLES = {
    "random_rotation": "rotation",
    "random_projection": "projection",
    "dct_fuzzy": "DCT",
    "nonmetric_mds": "NMDS",
    "kde_resample": "KDE",
    "pca_laplace": "PCA",
    "additive_noise": "additive",
    "randomized_response": "responses",
    "pipeline": "pipeline",
}
METRIC_BY_GOAL: dict[Goal, str] = {
    "reconstruct": "breach_rate",
    "norms": "norm_breach_rate",
    "link": "rate",
    "source": "source_rate",
    "member": "true_positive_rate",
    "infer": "inference_rate",
    "pair": "pair_rate",
    "single_out": "singling_rate",
}
TABLE_LINES = (
    *ATTACKS,
    "transform_inverse.leaked",
    "record_linkage.partial",
)  # attacks, then scenarios


def choose_tables(method: str) -> tuple[str, ...]:
    """Return the tables that a method is audited on."""
    return CATEGORICAL_TABLES if method in ("randomized_response", "pipeline") else NUMERIC_TABLES


def get_score_name(line: str) -> str:
    """Return the name of the main score of an attack, or of a scenario of it."""
    return f"{line}.{METRIC_BY_GOAL[ATTACKS[line.split('.')[0]].goal]}"


def is_broken(score: Score) -> bool:
    """Return whether the complete interval lies above the baseline."""
    return score.low > score.baseline + MIN_EXCESS


def format_cell(scores: Iterable[Score]) -> str:
    """Return the largest excess over the baseline in percent, bold if ``is_broken``."""
    found = list(scores)
    if not found:
        return "-"
    text = f"{100 * max(0.0, *(score.value - score.baseline for score in found)):.0f}"
    return f"**{text}**" if any(map(is_broken, found)) else text


def measure_column(method: str, parameters: Mapping[str, Any]) -> dict[str, str]:
    """Audit one setting on its tables, and return a cell for each line of the table."""
    found = [
        audit_release(Release(method, parameters, table), list(ATTACKS))
        for table in choose_tables(method)
    ]
    return {
        line: format_cell(
            scores[get_score_name(line)] for scores in found if get_score_name(line) in scores
        )
        for line in TABLE_LINES
    }


def format_table(columns: Mapping[str, Mapping[str, str]]) -> str:
    """Return the table as Markdown."""
    heads = ["attack", *columns]
    lines = [heads, ["---"] * len(heads)]
    lines += [[f"`{line}`", *(each[line] for each in columns.values())] for line in TABLE_LINES]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main(names: Sequence[str]) -> None:
    columns = {}
    for words, settings in (("", WEAK_SETTINGS), (", noisier", NOISIER_SETTINGS)):
        for method, parameters in settings.items():
            if not names or method + words in names:
                columns[COLUMN_TITLES[method] + words] = measure_column(method, parameters)
    print(format_table(columns))


if __name__ == "__main__":
    main(sys.argv[1:])
