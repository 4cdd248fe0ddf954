"""Rows around records in eight columns, so narrow that hardly any other record can be behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.attacker import RecordSet
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.sanitizers.kde_resample import kernel_correction, normal_reference

D = 8


def schema(d: int = D) -> Schema:
    numeric = tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(d))
    return Schema(numeric, label=Categorical("label", ("a", "b")))


def public(bandwidth: str = "paper", d: int = D, **more: Any) -> PublicParameters:
    plain = PublicParameters(
        method="kde_resample",
        space="original",
        columns=schema(d).names,
        centre=np.zeros(d),
        loadings=np.eye(d),
        facts={"kernel": "epanechnikov", "bandwidth": bandwidth},
    )
    return replace(plain, **more)


def people(n: int, rng: np.random.Generator, d: int = D) -> RecordSet:
    label = rng.integers(0, 2, n).astype(np.int32)
    X = 0.25 * label[:, None] + 0.6 * rng.random((n, d)) + 0.15 * rng.random((n, 1))
    return RecordSet(X, np.zeros((n, 0), dtype=np.int32), label)


def picked(who: RecordSet, places: Ints) -> RecordSet:
    return RecordSet(who.X[places], who.C[places], who.label[places])


def drawn(
    who: RecordSet, m: int, rng: np.random.Generator, corrected: bool = False
) -> tuple[Floats, Codes, Ints]:
    """Rows, their labels and the people behind them, written once more after the paper."""
    d = who.X.shape[1]
    source = rng.integers(0, who.n, m)
    Y = who.X[source].copy()
    for code in np.unique(who.label).tolist():
        X = who.X[who.label == code]
        h = X.std(axis=0, ddof=1) * normal_reference(np.array(float(len(X))), d)
        h = h * kernel_correction(d) if corrected else h
        here = who.label[source] == code
        Y[here] += h * (2.0 * rng.beta(2.0, 2.0, (int(here.sum()), d)) - 1.0)
    return np.clip(Y, 0.0, 1.0), who.label[source], source


def weak(rng: np.random.Generator) -> dict[str, Any]:
    who = people(150, rng)
    Y, _, source = drawn(who, 150, rng)
    return {
        "X": who.X,
        "Y": Y,
        "label": who.label,
        "public": public(),
        "schema": schema(),
        "source": source,
        "known": 0,
    }
