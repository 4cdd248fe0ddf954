"""One line of cheap parameters for everything that is registered; a key without a line fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from ppdm_core.sanitizers import SANITIZERS as REGISTERED
from ppdm_core.sanitizers import Sanitizer
from tests.support import written_tables
from tests.support.servers import Postgresql


@dataclass(frozen=True)
class SanitizerCase:
    key: str
    parameters: Mapping[str, Any]
    noisier: Mapping[str, Any] | str  # parameters for four times the noise, or why there are none

    def make(self, **changed: Any) -> Sanitizer:
        return REGISTERED[self.key].from_parameters({**self.parameters, **changed})


@dataclass(frozen=True)
class SourceCase:
    write: str | Callable[[pa.Table, Path], None]  # "" if a server holds the table
    options: Mapping[str, str] = field(default_factory=dict)
    server: Postgresql | None = None  # filled in by the test
    rows: int = 400_000  # that are read in reasonable time
    has_any_name: bool = True  # columns may have every name
    has_underscores: bool = True  # names may begin with one


_PCA = {"components": 3, "b": 0.3}
_LAYOUT = {"landmarks": 30, "iterations": 20}
_RESPONSES = {"method": "randomized_response", "gamma": {"attribute": 9.0}}

# The part of an id before "-" is the key in the registry.
SANITIZERS: dict[str, SanitizerCase] = {
    id_: SanitizerCase(id_.split("-")[0], parameters, noisier)
    for id_, parameters, noisier in (
        ("pca_laplace-isotropic", _PCA, {"b": 1.2}),
        ("pca_laplace-per_component", {**_PCA, "noise_shape": "per_component"}, {"b": 1.2}),
        ("pca_laplace-private", {**_PCA, "basis": "private", "scale": "zscore"}, {"b": 1.2}),
        ("pca_laplace-original", {**_PCA, "components": 0.99, "space": "original"}, {"b": 1.2}),
        (
            "pca_laplace-gamma",
            {"components": {"variance": 0.8}, "gamma": {"record": 1e4}},
            {"gamma": {"record": 10.0}},
        ),
        ("pca_laplace-student_t", {**_PCA, "law": "student_t", "nu": 3}, {"b": 1.2}),
        ("additive_noise-logistic", {"b": 0.3, "law": "logistic"}, {"b": 1.2}),
        ("additive_noise-uniform", {"b": 0.3, "law": "uniform", "scale": "zscore"}, {"b": 1.2}),
        ("random_rotation", {}, "a rotation has no noise whose level could be raised"),
        ("random_rotation-translation", {"translation": True}, "a rotation has no noise either"),
        (
            "randomized_response",
            {"gamma": {"attribute": {"c0": 9.0, "c1": 3.0}}},
            {"gamma": {"attribute": 1.5}},
        ),
        (
            "pipeline",
            {"numeric": {"method": "pca_laplace", **_PCA}, "categorical": _RESPONSES},
            {"numeric": {"method": "pca_laplace", **_PCA, "b": 1.2}},
        ),
        ("random_projection", {"components": 3}, {"components": 1}),
        (
            "random_projection-unit_columns",
            {"components": 0.9, "normalisation": "unit_columns"},
            {"components": 0.2},
        ),
        ("kde_resample", {}, "its rows belong to no record, so that they have no distortion"),
        (
            "kde_resample-floor",
            {"bandwidth": "floor", "floor": 0.1, "rows": 30, "clip": False, "lonely": "merge"},
            "its rows belong to no record, so that they have no distortion",
        ),
        ("nonmetric_mds", {**_LAYOUT, "dimensions": 3}, {"dimensions": 1}),
        (
            "nonmetric_mds-primary",
            {**_LAYOUT, "ties": "primary", "scale": "zscore"},
            {"dimensions": 0.2},
        ),
        ("dct_fuzzy", {"b": 0.1, "p": 0.2}, {"b": 0.4}),
        ("dct_fuzzy-random", {"b": 0.05, "selection": "random", "centre": True}, {"b": 0.4}),
    )
}

# The planted leak that the attack must break: one of the product, or of tests.support.leaks.
ATTACKS: dict[str, str] = {
    "transform_inverse": "components",
    "correlation_filter": "common factor",
    "shrinkage": "narrow groups",
    "known_pairs": "rotation",
    "known_records": "moved rotation",
    "known_sample_pca": "rotation",
    "known_sample_ica": "rotation",
    "trilateration": "embedding",
    "column_order": "shuffled cosines",
    "other_party": "part of a sum",
    "pooled_moments": "pooled moments",
    "release_averaging": "twenty releases",
    "norm_bounds": "projection",
    "source_record": "kernels",
    "kernel_support": "kernels",
    "low_bits": "float Laplace",
    "record_linkage": "components",
    "colluding_sites": "pooled rows",
    "learned_linkage": "noise with a hole",
    "release_differencing": "arrivals",
    "membership": "noisy components of half",
    "attribute_inference": "components of half",
    "related_party": "related columns",
    "singling_out": "components of half",
    "linkability": "components of half",
}

# The value of the metric on a perfect copy; None: as on the original; a text: why there is none.
_NO_COPY = "it measures a density that only kde_resample draws from, not rows"
_NO_ORDER = "it measures a secret order of cosine coefficients, and a copy has none"
METRICS: dict[str, float | str | None] = {
    "interval_privacy": 0.0,
    "relative_error": 0.0,
    "breach_rate": 1.0,
    "norm_breach_rate": 1.0,
    "true_positive_rate": 1.0,
    "auc": 1.0,
    "rate": 1.0,
    "source_rate": 1.0,
    "source_posterior": 1.0,
    "inference_rate": 1.0,
    "pair_rate": 1.0,
    "singling_rate": 1.0,
    "knn_accuracy": None,
    "radius_knn_accuracy": None,
    "naive_bayes_accuracy": None,
    "neural_network_accuracy": None,
    "best_accuracy": "it is the largest of the accuracies, which are checked one by one",
    "deterioration": 0.0,
    "cluster_f_measure": None,
    "adjusted_rand": 1.0,
    "class_compactness": None,
    "neighbourhood_preservation": 1.0,
    "distance_loss": 0.0,
    "distance_correlation": 1.0,
    "stress": 0.0,
    "column_distance": 0.0,
    "correlation_error": 0.0,
    "frequency_error": "it reads categorical columns, and the tables here are numbers",
    "copied_records": 1.0,
    "hidden_digits": "it looks at digits finer than the noise, and a copy has no noise",
    "recomputed_noise": "it compares noise with generators, and a copy has no noise",
    "repeated_noise": 1.0,
    "predictable_noise": 1.0,
    "closest_record": 1.0,
    "dapl_held_out": _NO_COPY,
    "dapl_plug_in": _NO_COPY,
    "order_privacy": _NO_ORDER,
    "order_guesses": _NO_ORDER,
}

# The statement that writes the table t to a file, and what [source] needs besides 'path'.
SOURCES: dict[str, SourceCase] = {
    "parquet": SourceCase("copy t to '{path}' (format parquet)"),
    "duckdb": SourceCase("attach '{path}' as o; create table o.t as from t", {"table": "t"}),
    "postgresql": SourceCase("", {"table": "t"}),
    "excel": SourceCase(written_tables.write_excel, rows=2000),
    "sas": SourceCase(written_tables.write_sas, rows=20_000, has_any_name=False),
    "spss": SourceCase(
        written_tables.write_spss, rows=20_000, has_any_name=False, has_underscores=False
    ),
    "stata": SourceCase(written_tables.write_stata, rows=20_000, has_any_name=False),
    "csv": SourceCase("copy t to '{path}' (format csv)"),
}

# The broken inputs (tests.contract.gate_inputs) that each gate must refuse on its own.
GATES: dict[str, tuple[str, ...]] = {
    "decisions": ("no owner", "audience to be decided", "limit set by no person"),
    "required_audits": (
        "empty report",
        "required audit failed",
        "required audit skipped",
        "required audit missing",
        "no linkage attack",
        "no reconstruction attack",
        "no membership attack",
    ),
    "label": (
        "empty report",
        "label not measured",
        "label skipped for another reason",
        "label without a limit",
        "label identifies persons",
    ),
    "amplification": (
        "no bound",
        "gamma is NaN",
        "gamma too large",
        "unknown unit",
        "limit is NaN",
    ),
    "score_limits": (
        "empty report",
        "value is NaN",
        "low is NaN",
        "high is infinite",
        "baseline is NaN",
        "worst draw is NaN",
        "interval upside down",
        "value outside its interval",
        "no records",
        "an unlimited score is NaN",
        "limited score missing",
        "limit is NaN",
        "over the limit",
        "utility below the limit",
        "too few records to tell",
        "label over its limit",
        "limit far above the baseline",
        "measured twice, once over the limit",
    ),
    "self_test": (
        "no self-test",
        "self-test of other code",
        "self-test of no code",
        "self-test of another policy",
        "self-test without a leak test",
        "a leak that was not tried",
        "a leak that was not noticed",
        "a leak noticed more often than tried",
        "a leak noticed in few trials",
        "a leak tested twice",
        "noise taken for a leak",
        "no noise was tried",
        "an attack failed on a leak",
        "the leak scan sees nothing",
        "policy not checked",
        "policy checked on no release",
        "policy checked on no record",
        "policy lets a copy pass",
        "policy refuses noise",
    ),
    "ledger": (
        "limit is NaN",
        "the ledger was not read",
        "the account is NaN",
        "the account shrinks",
        "the account is spent",
        "the account has no bound",
        "too many draws",
        "unknown account",
    ),
}

ENGINES: dict[str, dict[str, Any]] = {
    "local": {"workers": 2, "part_blocks": 2},
    "dask": {"part_blocks": 2},
}
