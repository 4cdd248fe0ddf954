"""Which attack must notice which planted leak: the matrix, as data."""

from __future__ import annotations

from ppdm_core.attacks import ATTACKS
from ppdm_core.model.policy import Policy

REPETITIONS = 20
LEAST_NOTICED = 17  # of the repetitions, of each leak
MOST_ALARMS = 3  # of the repetitions, on noise
DOOR_SCAN = "door_scan"  # not an attack: the door's own look at what leaves

MUST_CATCH: dict[str, tuple[str, ...]] = {
    "identity": (
        "transform_inverse",
        "correlation_filter",
        "shrinkage",
        "known_pairs",
        "known_records",
        "trilateration",
        "record_linkage",
        "membership",
        "attribute_inference",
        "singling_out",
        "linkability",
    ),
    "slight noise": (  # 1 % of each column's range
        "correlation_filter",
        "shrinkage",
        "known_pairs",
        "record_linkage",
        "membership",
    ),
    "rotation": (
        "known_pairs",
        "known_records",
        "trilateration",
        "known_sample_pca",  # of a skewed table with distinct eigenvalues
        "known_sample_ica",  # of independent columns that are far from normal
    ),
    "verbatim rows": ("record_linkage", "closest_record", DOOR_SCAN),  # max(5, 1 %) of 500
    "shuffled cosines": ("column_order",),
    "projection": ("norm_bounds",),
    "kernels": ("source_record", "kernel_support"),  # eight columns
    "twenty releases": ("release_averaging",),  # each with fresh noise
    "arrivals": ("release_differencing",),  # two people with each release
    "float Laplace": ("low_bits",),
}


def plants_for(name: str) -> tuple[str, ...]:
    return tuple(plant for plant, names in MUST_CATCH.items() if name in names)


def proven_names() -> tuple[str, ...]:
    """Everything in the matrix, each once."""
    return tuple(dict.fromkeys(name for names in MUST_CATCH.values() for name in names))


def limited(policy: Policy) -> tuple[str, ...]:
    """The attacks that a limit judges."""
    names = {limit.split(".")[0] for limit in policy.limits}
    return tuple(name for name in ATTACKS if name in names)


def relied_on(policy: Policy) -> tuple[str, ...]:
    """What a verdict stands on: required attacks, those that a limit judges, the door's scan."""
    names = {*policy.required, *limited(policy)}
    return (*(name for name in ATTACKS if name in names), DOOR_SCAN)
