"""All experiments: one file per family, one line in the dict."""

from __future__ import annotations

from collections.abc import Callable

from studies.reproduction.experiments.cosine_rivals import cosine_rivals
from studies.reproduction.experiments.cosines import (
    cosine_sweep,
    kept_coefficients,
    salary_example,
    secret_order,
)
from studies.reproduction.experiments.embeddings import (
    dimension_sweep,
    embedded_neighbours,
    embedding_attacks,
    layout_quality,
)
from studies.reproduction.experiments.known_samples import (
    known_sample,
    known_sample_limits,
    sign_search_times,
)
from studies.reproduction.experiments.laplace_mining import (
    component_counts,
    laplace_mining,
    laplace_privacy,
    method_points,
)
from studies.reproduction.experiments.laplace_theory import (
    breach_examples,
    distance_distortion,
    laplace_bounds,
    measured_noise,
)
from studies.reproduction.experiments.laplace_times import laplace_times
from studies.reproduction.experiments.partitions import partitions
from studies.reproduction.experiments.resampling import (
    constant_column,
    half_of_the_rows,
    length_bounds,
    pooled_classifiers,
    split_sizes,
)
from studies.reproduction.experiments.rotations import (
    breach_formula,
    known_rows,
    rotation_mining,
    withheld_records,
)
from studies.reproduction.experiments.source_records import (
    density_limits,
    density_loss,
    growing_tables,
    source_records,
)
from studies.reproduction.measurement import Measurement
from studies.reproduction.releases import Quantities

Experiment = Callable[[Measurement], Quantities]
EXPERIMENTS: dict[str, Experiment] = {
    "laplace_bounds": laplace_bounds,
    "breach_examples": breach_examples,
    "measured_noise": measured_noise,
    "distance_distortion": distance_distortion,
    "laplace_mining": laplace_mining,
    "laplace_privacy": laplace_privacy,
    "method_points": method_points,
    "component_counts": component_counts,
    "laplace_times": laplace_times,
    "rotation_mining": rotation_mining,
    "known_rows": known_rows,
    "breach_formula": breach_formula,
    "withheld_records": withheld_records,
    "known_sample": known_sample,
    "known_sample_limits": known_sample_limits,
    "sign_search_times": sign_search_times,
    "split_sizes": split_sizes,
    "constant_column": constant_column,
    "pooled_classifiers": pooled_classifiers,
    "density_loss": density_loss,
    "half_of_the_rows": half_of_the_rows,
    "source_records": source_records,
    "growing_tables": growing_tables,
    "density_limits": density_limits,
    "length_bounds": length_bounds,
    "kept_coefficients": kept_coefficients,
    "cosine_sweep": cosine_sweep,
    "cosine_rivals": cosine_rivals,
    "partitions": partitions,
    "salary_example": salary_example,
    "secret_order": secret_order,
    "embedded_neighbours": embedded_neighbours,
    "layout_quality": layout_quality,
    "dimension_sweep": dimension_sweep,
    "embedding_attacks": embedding_attacks,
}
