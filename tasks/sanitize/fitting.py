"""What a method learns from records, and which records are set aside for that."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ppdm_core.model.arrays import Names
from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import Sanitizer
from tasks.context import ReleaseContext
from tasks.sanitize.inputs import SanitizeInputs
from tasks.sanitize.records import choose_set_aside, name_all, select_named
from warehouse.stored_fits import NOBODY, Fit, join_set_aside, select_fits


@dataclass(frozen=True, eq=False)
class SplitRecords:
    """The records that are released, and what was learned from others or from them."""

    released: Rows
    fit: Fit
    reserved_by: tuple[str, ...]  # digests of the fits that records are set aside for
    drawn: Rows | None  # those set aside for this fit that were drawn before; None: none was


def split_records(
    context: ReleaseContext, sanitizer: Sanitizer, inputs: SanitizeInputs
) -> SplitRecords:
    """Set records aside and learn from them, or use what an earlier run learned.

    Records that were set aside for a published fit are in no later release of any method.
    """
    given = context.shared_fit or read_given_basis(context, sanitizer)
    identity = identify_fit(sanitizer, inputs.rows.schema, given)
    check_refit(context, sanitizer, identity, inputs)
    reserving, kept = list_reserving_fits(inputs), find_kept_fit(identity, inputs)
    check_recognisable(context, reserving)
    set_aside = kept.set_aside if kept else choose_records(context, sanitizer, inputs)
    names = np.union1d(join_set_aside(reserving), set_aside)
    released = select_named(inputs.rows, inputs.noise, names, others=True)
    used = released if inputs.drawn is None else select_named(inputs.rows, inputs.noise, set_aside)
    if released.n < 2 or (kept is None and used.n < 2):
        raise BadInput(
            f"Setting records aside leaves {used.n} to fit on and {released.n} to release.",
            remedy="Release more records, or change 'basis_share'.",
        )
    fit = kept or Fit(identity, learn(sanitizer, used, given), set_aside)
    reserved_by = {each.digest for each in (*reserving, fit) if len(each.set_aside)}
    names = find_drawn(set_aside, inputs)
    drawn = select_named(inputs.rows, inputs.noise, names) if len(names) else None
    return SplitRecords(released, fit, tuple(sorted(reserved_by)), drawn)


def choose_records(context: ReleaseContext, sanitizer: Sanitizer, inputs: SanitizeInputs) -> Names:
    """Return the records to set aside for a new fit, none if the method uses released ones.

    Where parties with other columns release their common persons, all others are set aside.
    """
    if context.common is not None:
        names = name_all(inputs.rows, inputs.noise)
        return np.sort(np.delete(names, list(context.common)))
    if inputs.drawn is None:
        return NOBODY
    return choose_set_aside(inputs.rows, inputs.noise, sanitizer.set_aside, inputs.drawn)


def learn(sanitizer: Sanitizer, rows: Rows, given: dict[str, Any] | None) -> dict[str, Any]:
    """Return what the method learns from records, with their scaling."""
    scaling = fit_scaling(rows, sanitizer.scale)
    learned = given or sanitizer.fit(scaling.apply(rows))
    return {**learned, "scaling": scaling.as_dict()}


def find_kept_fit(identity: str, inputs: SanitizeInputs) -> Fit | None:
    """Return what an earlier run learned, or None if it must be learned.

    A published fit is kept in any case. One that was not published is made again if records that
    were set aside for it have been drawn since.
    """
    published = select_fits(inputs.fits, [facts.fitted for facts in inputs.published])
    unharmed = [fit for fit in inputs.fits if not len(find_drawn(fit.set_aside, inputs))]
    return next((fit for fit in published + unharmed if fit.identity == identity), None)


def find_drawn(names: Names, inputs: SanitizeInputs) -> Names:
    """Return those of the records that an earlier release drew."""
    return names[inputs.drawn.find(names)] if inputs.drawn else NOBODY


def list_reserving_fits(inputs: SanitizeInputs) -> list[Fit]:
    """Return the published fits that records were set aside for."""
    return select_fits(
        inputs.fits, [digest for facts in inputs.published for digest in facts.set_aside_fits]
    )


def check_recognisable(context: ReleaseContext, reserving: list[Fit]) -> None:
    """Check that records which an earlier release set aside are known by their ids."""
    if reserving and context.record_id is None:
        raise BadInput(
            f"Earlier releases of '{context.dataset}' set records aside for a basis, which must be "
            "in no release; without a record_id they cannot be recognised.",
            remedy="Declare the record_id of the earlier releases in [dataset].",
        )


def check_refit(
    context: ReleaseContext, sanitizer: Sanitizer, identity: str, inputs: SanitizeInputs
) -> None:
    """Check that the method learns from the records of a dataset only once."""
    others = [each for each in inputs.published if each.fit not in (None, identity)]
    if sanitizer.learns and others and not sanitizer.refit_waiver:
        raise BadInput(
            f"Method '{context.method}' would learn from records of '{context.dataset}' a second "
            "time; two published fits around one changed record reveal that record.",
            remedy="Keep the earlier parameters, or waive it by name: refit_waiver = "
            '"who and why" in [sanitizer].',
        )


def read_given_basis(context: ReleaseContext, sanitizer: Sanitizer) -> dict[str, Any] | None:
    """Return the basis of a file that the release file names, or None."""
    name = getattr(sanitizer, "basis_file", None)
    if name is None:
        return None
    from tasks.sanitize.basis_file import read_basis

    features = [
        column.name
        for column in context.columns
        if (column.role, column.type) == ("feature", "numeric")
    ]
    return read_basis(Path(context.folder) / name, features)


def identify_fit(sanitizer: Sanitizer, schema: Schema, given: dict[str, Any] | None) -> str:
    """Return a digest of everything that a fit depends on, except the records."""
    columns = [(column.name, column.low, column.high) for column in schema.numeric]
    text = json.dumps([sanitizer.name, sanitizer.fit_parameters(), columns, given], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
