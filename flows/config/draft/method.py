"""Choose the method of a drafted release, and find out what can be asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.model.errors import BadInput
from ppdm_core.settings.errors import check_known

if TYPE_CHECKING:
    from ppdm_core.model.rows import ArrayRows
    from ppdm_core.sanitizers import Sanitizer
    from warehouse.columns import Column, Source

RECORD_GAMMA = 1000  # of a drafted release; a pipeline divides it among its parts
TRIAL_ROWS = 200


@dataclass(frozen=True)
class MethodDraft:
    """A method with its settings, and which attacks and limits suit it."""

    name: str
    is_usual: bool = True  # the one for these columns; the template has its settings
    settings: Mapping[str, Any] = field(default_factory=dict)
    has_map: bool = True  # publishes a linear map
    has_noise: bool = True  # publishes the scale of its noise
    row_aligned: bool = True  # a released row belongs to one record
    is_bounded: bool = True


def check_method_name(name: str) -> None:
    """Raise BadInput if there is no such method."""
    from ppdm_core.sanitizers import SANITIZERS

    if name:
        check_known("method", name, SANITIZERS)


def list_methods(columns: Sequence[Column]) -> list[str]:
    """Return the methods that accept these features; the first one is the usual one."""
    from ppdm_core.sanitizers import SANITIZERS

    kinds = {column.type for column in columns if column.role == "feature"}
    exact = [name for name, method in SANITIZERS.items() if method.accepts == kinds]
    wider = [
        name
        for name, method in SANITIZERS.items()
        if method.accepts > kinds and not method.is_composite  # whose parts need both kinds
    ]
    return sorted(exact, key=lambda name: not SANITIZERS[name].is_usual) + wider


def draft_method(name: str, columns: Sequence[Column], source: Source) -> MethodDraft:
    """Return the named method, or the usual one for these columns.

    Raise BadInput if it cannot release them.
    """
    from ppdm_core.sanitizers import SANITIZERS, make_sanitizer

    usual = list_methods(columns)[0]
    if name in ("", usual):
        return MethodDraft(usual)
    features = [column for column in columns if column.role == "feature"]
    accepts = SANITIZERS[name].accepts
    for column in features:
        if column.type not in accepts:
            raise BadInput(
                f"Method '{name}' takes only {' and '.join(sorted(accepts))} features, and column "
                f"'{column.name}' of {source.name} is {column.type}.",
                file=source.path,
                column=column.name,
                remedy=f"Use method '{usual}', which takes all columns of this table.",
            )
    settings = SANITIZERS[name].suggest_parameters(len(features), RECORD_GAMMA)
    sanitizer = make_sanitizer(name, settings)
    kinds = [column.type for column in features]
    try:
        sanitizer.check_kinds(kinds.count("numeric"), kinds.count("categorical"))
        return try_method(sanitizer, settings, make_random_rows(columns))
    except BadInput as error:
        raise BadInput(
            f"Method '{name}' does not suit the columns of {source.name}: {error.message}",
            file=source.path,
            remedy=f"Use method '{usual}'.",
        ) from None


def try_method(sanitizer: Sanitizer, settings: Mapping[str, Any], rows: ArrayRows) -> MethodDraft:
    """Return what a release by the method publishes, from a draw of random records."""
    from ppdm_core.numerics.linear_map import has_map, has_noise
    from ppdm_core.numerics.noise import Noise
    from ppdm_core.numerics.scaling import fit_scaling

    scaling = fit_scaling(rows, sanitizer.scale)
    fitted = {**sanitizer.fit(rows), "scaling": scaling.as_dict()}
    public = sanitizer.sanitize(rows, Noise(bytes(32)), fitted).public
    return MethodDraft(
        name=sanitizer.name,
        is_usual=False,
        settings=settings,
        has_map=has_map(public),
        has_noise=has_noise(public),
        row_aligned=sanitizer.row_aligned,
        is_bounded=sanitizer.guarantee(rows.schema, fitted).kind != "empirical",
    )


def make_random_rows(columns: Sequence[Column]) -> ArrayRows:
    """Return random records with these features, and numbers between 0 and 1; no cell is used."""
    from ppdm_core.model.rows import ArrayRows
    from ppdm_core.model.schema import Categorical, Numeric, Schema

    features = [column for column in columns if column.role == "feature"]
    numeric = [Numeric(each.name, 0.0, 1.0) for each in features if each.type == "numeric"]
    categorical = [
        Categorical(each.name, each.categories) for each in features if each.type == "categorical"
    ]
    schema = Schema(tuple(numeric), tuple(categorical), Categorical("label", ("a", "b")))
    rng = np.random.default_rng(0)
    X = rng.random((TRIAL_ROWS, len(numeric)))
    C = rng.integers(0, [each.k for each in categorical], (TRIAL_ROWS, len(categorical)))
    label = np.arange(TRIAL_ROWS, dtype=np.int32) % 2
    return ArrayRows(schema, X, label, C=C.astype(np.int32))
