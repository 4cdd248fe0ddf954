"""What every sanitizer must do. Each check takes one and raises AssertionError."""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import bdtrc

from ppdm.cli.docstrings import read_parameter_meanings, split_docstring
from ppdm_core.attacks import ATTACKS
from ppdm_core.metrics import METRICS, ReleaseComparison
from ppdm_core.model.errors import PpdmError
from ppdm_core.model.release import Released
from ppdm_core.model.rows import COLUMNS, ArrayRows, Block, Rows, RowsView
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.linear_map import has_map, project
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers import Sanitizer
from ppdm_core.sanitizers.pipeline import Pipeline
from tests.support.tables import (
    KEY,
    LARGE,
    ChunkRows,
    RecomputedRows,
    adapt_columns,
    fit_sanitizer,
    insert_record,
    make_table,
    read_bytes,
    read_cells,
    read_codes,
    read_numbers,
    run_sanitizer,
    scale_rows,
    store_in_parts,
)

FALSE_ALARM = 1e-9
SECTIONS = ("Public", "Broken by", "Guarantee", "References")


def keys(count: int) -> list[bytes]:
    return [bytes([i]) * 32 for i in range(count)]


def check_input_untouched(sanitizer: Sanitizer) -> None:
    rows = adapt_columns(make_table(), sanitizer)
    fitted = fit_sanitizer(sanitizer, rows)
    shown = scale_rows(rows, fitted)
    X = shown.map(lambda block: block, shown.schema)  # stored, so that it could be written to
    before = read_bytes(X)
    sanitizer.fit(X)
    sanitizer.guarantee(X.schema, fitted)
    read_bytes(sanitizer.sanitize(X, Noise(KEY), fitted).rows)
    assert read_bytes(X) == before, "it wrote to its input"


def check_same_key_same_output(sanitizer: Sanitizer) -> None:
    one, two = (run_sanitizer(sanitizer, adapt_columns(make_table(), sanitizer)) for _ in range(2))
    assert read_bytes(one.rows) == read_bytes(two.rows), "two runs with one key differ"


def check_keys_matter(sanitizer: Sanitizer) -> None:
    rows = adapt_columns(make_table(), sanitizer)
    outputs = (read_cells(run_sanitizer(sanitizer, rows, key).rows).tobytes() for key in keys(20))
    first = next(outputs)
    assert any(output != first for output in outputs), "20 keys give the same output"


def check_global_state_unmoved(sanitizer: Sanitizer) -> None:
    """It neither moves nor reads the global generators of numpy and Python."""
    outputs = []
    for seed in (1, 2):
        np.random.seed(seed)
        random.seed(seed)
        before = repr(np.random.get_state()), random.getstate()
        outputs.append(
            read_bytes(run_sanitizer(sanitizer, adapt_columns(make_table(), sanitizer)).rows)
        )
        after = repr(np.random.get_state()), random.getstate()
        assert before == after, "it moved a global generator"
    assert outputs[0] == outputs[1], "its output depends on a global generator"


def check_storage_does_not_matter(sanitizer: Sanitizer, folder: Path) -> None:
    """Chunks of any size and Parquet parts give the same fit and the same bytes.

    Small chunks are tried on a small table: they are regrouped to blocks before a method sees them.
    """
    for n, sizes in ((60, (1, 7)), (LARGE, (1000, LARGE))):
        _check_stored_otherwise(sanitizer, n, sizes, folder / str(n))


def _check_stored_otherwise(
    sanitizer: Sanitizer, n: int, sizes: tuple[int, ...], folder: Path
) -> None:
    rows = adapt_columns(make_table(n), sanitizer)
    fitted = fit_sanitizer(sanitizer, rows)
    X = scale_rows(rows, fitted)
    learned = sanitizer.fit(X)
    expected = read_bytes(sanitizer.sanitize(X, Noise(KEY), fitted).rows)

    def check(name: str, stored: Rows) -> None:
        got = read_bytes(sanitizer.sanitize(stored, Noise(KEY), fitted).rows)
        assert got == expected, f"other bytes from {name}"

    check("parts", store_in_parts(X, folder / "scaled"))
    assert fit_sanitizer(sanitizer, store_in_parts(rows, folder / "raw")) == fitted, (
        "another fit from parts"
    )
    assert sanitizer.fit(ChunkRows(X, 1000)) == learned, "another fit from chunks of 1000"
    for size in sizes:
        check(f"chunks of {size}", ChunkRows(X, size))


def check_steps_hold_no_state(sanitizer: Sanitizer) -> None:
    """Its steps give equal rows and counts in another pass, in another order, and unstored."""
    rows = adapt_columns(make_table(LARGE), sanitizer)
    fitted = fit_sanitizer(sanitizer, rows)
    stored = run_sanitizer(sanitizer, rows, fitted=fitted)
    released = run_sanitizer(sanitizer, RecomputedRows(rows), fitted=fitted)
    view = released.rows
    assert isinstance(view, RowsView), "its rows are not made by Rows.map"
    first, again = ([collect_bytes(block) for block in view.blocks()] for _ in range(2))
    backwards = [collect_bytes(view.step(block)) for block in reversed(list(view.rows.blocks()))]
    assert first == again, "a second pass gives other rows or counts"
    assert first == backwards[::-1], "another order of blocks gives other rows or counts"
    assert read_bytes(view) == read_bytes(stored.rows), "stored rows are other rows"
    assert released.counts == stored.counts, "it counts outside the block"


def collect_bytes(block: Block) -> tuple[bytes, ...]:
    """Return everything that a step returned, for comparison."""
    counts = repr(sorted(block.counts.items())).encode()
    return *(getattr(block, name).tobytes() for name in COLUMNS), counts


def check_declared_shape(sanitizer: Sanitizer) -> None:
    rows = adapt_columns(make_table(), sanitizer)
    released = run_sanitizer(sanitizer, rows)
    Y = read_cells(released.rows)
    columns, names = released.public.columns, released.public.names
    assert released.public.method == sanitizer.name, "it publishes another method's name"
    assert released.rows.schema.names == columns, "published and stored column names differ"
    answered = tuple(response.column for response in released.public.responses)
    assert released.rows.schema.categorical == answered, (
        "it does not declare its categorical columns"
    )
    assert Y.shape[1:] == (len(names),), f"{Y.shape[1]} columns, {len(names)} declared"
    assert Y.shape[0] == released.rows.n, "its count of rows is not its rows"
    if sanitizer.row_aligned:
        assert released.rows.n == rows.n, "rows were lost"
        parts = [block.key for block in released.rows.blocks()]
        assert np.array_equal(np.concatenate(parts), rows.whole.key), "rows changed their places"
    if sanitizer.keeps_columns:
        assert columns == rows.schema.names, "it says that it keeps the columns"
    assert np.isfinite(Y).all(), "it released values that are not finite"
    assert 0 < released.atom < 1, "the largest chance of one value is a probability"


def check_verbatim_within_chance(sanitizer: Sanitizer) -> None:
    """No more cells or rows without noise than chance makes, at one false alarm in 1e9."""
    rows = adapt_columns(make_table(2000), sanitizer)
    fitted = fit_sanitizer(sanitizer, rows)
    released = run_sanitizer(sanitizer, rows, fitted=fitted)
    X, Y = read_numbers(scale_rows(rows, fitted)), read_numbers(released.rows)
    n, s = Y.shape
    Z, clean, step = compare_with_clean(released, X, Y)
    if clean.shape == Z.shape:
        for column in (np.abs(Z - clean) <= step / 2 + 1e-12).T:
            assert_by_chance(int(column.sum()), n, released.atom, "cells without noise")
    if Y.shape == X.shape:
        originals = set(map(bytes, X))
        equal = sum(bytes(row) in originals for row in Y)
        assert_by_chance(equal, n, min(1.0, n * released.atom**s), "original rows")
    before, after = read_codes(rows), read_codes(released.rows)
    for j, response in enumerate(released.public.responses):
        count = int(np.sum(before[:, j] == after[:, j]))
        assert_by_chance(count, n, response.keep_probability, "true categories")


def compare_with_clean(
    released: Released, X: np.ndarray, Y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | float]:
    """Return the released values, the same without noise, and the grid step, in one space."""
    public = released.public
    if not has_map(public):
        return Y, X, 0.0
    Z = project(public, Y) if public.space == "original" else Y
    return Z, project(public, X), 0.0 if public.grid is None else public.grid


def assert_by_chance(count: int, n: int, chance: float, what: str) -> None:
    if count:
        p = bdtrc(count - 1, n, chance)
        assert p > FALSE_ALARM, f"{count} {what} of {n}, which chance makes with p = {p:.3g}"


def check_bad_input(sanitizer: Sanitizer, rows: ArrayRows, canary: str) -> None:
    """A result or one sentence without a value; never numpy's own error."""
    try:
        released = run_sanitizer(sanitizer, adapt_columns(rows, sanitizer))
    except PpdmError as error:
        message = str(error)
    else:
        assert np.isfinite(read_cells(released.rows)).all(), (
            "bad input became values without meaning"
        )
        return
    assert message.endswith((".", "?")), f"not a sentence: {message}"
    assert canary not in message, "its error quotes a value of the data"


def check_more_noise_more_distortion(quiet: Sanitizer, loud: Sanitizer) -> None:
    rows = adapt_columns(make_table(200), quiet)
    losses = [np.mean([measure_distortion(s, rows, key) for key in keys(5)]) for s in (quiet, loud)]
    assert losses[1] > losses[0], f"distortion fell from {losses[0]:.3g} to {losses[1]:.3g}"


def check_advice_reveals_less(quiet: Sanitizer, loud: Sanitizer) -> None:
    """What it declares as more private is what adds noise: ``loud`` has more than ``quiet``."""
    first, second = (
        each.numeric_part if isinstance(each, Pipeline) else each for each in (quiet, loud)
    )
    moved = {
        name: measure_parameter(getattr(second, name)) - measure_parameter(getattr(first, name))
        for name in first.more_private
        if getattr(first, name) != getattr(second, name)
    }
    assert moved, "it declares no parameter that adds noise as more private"
    for name, change in moved.items():
        way = "raise" if change > 0 else "lower"
        assert first.more_private[name] == way, f"'{name}' is more private the other way"
    assert quiet.advise().more_private, "it gives no advice"


def measure_parameter(value: Any) -> float:
    """Return a number, or the mean of those in a table."""
    if isinstance(value, Mapping):
        return float(np.mean([measure_parameter(each) for each in value.values()]))
    return float(value)


def measure_distortion(sanitizer: Sanitizer, rows: Rows, key: bytes) -> float:
    fitted = fit_sanitizer(sanitizer, rows)
    released = run_sanitizer(sanitizer, rows, key, fitted)
    X = read_cells(scale_rows(rows, fitted))
    label = np.zeros(len(X), dtype=np.int32)
    compared = ReleaseComparison(X, label, read_cells(released.rows), released.public)
    return METRICS["distance_loss"].measure(compared).value


def check_unchanged_records_keep_their_bytes(sanitizer: Sanitizer) -> None:
    """A row added in the middle changes the position of other records, not their values."""
    position = 5000
    rows = adapt_columns(make_table(LARGE), sanitizer)
    longer = adapt_columns(insert_record(make_table(LARGE), position), sanitizer)
    fitted = fit_sanitizer(sanitizer, rows)
    before = read_cells(run_sanitizer(sanitizer, rows, fitted=fitted).rows)
    after = read_cells(run_sanitizer(sanitizer, longer, fitted=fitted).rows)
    if not sanitizer.row_aligned:
        # A stranger is drawn a few times, and takes or makes as many places.
        moved = len(set(map(bytes, before)) ^ set(map(bytes, after)))
        assert moved <= 20, f"{moved} rows of others changed"
        return
    changed = int(np.sum(np.any(np.delete(after, position, axis=0) != before, axis=1)))
    assert changed == 0, f"{changed} of {LARGE} unchanged records changed"


def check_guarantee(sanitizer: Sanitizer) -> None:
    """Figures are finite exactly when a bound is claimed, and the record's is the largest."""
    rows = adapt_columns(make_table(), sanitizer)
    fitted = fit_sanitizer(sanitizer, rows)
    promise = sanitizer.guarantee(scale_rows(rows, fitted).schema, fitted)
    figures = (promise.ln_component, promise.ln_attribute, promise.ln_record)
    assert all(figure > 0 for figure in figures), "every release has some amplification"
    bounded = promise.kind in ("bounded", "bounded_given_basis")
    assert bounded or promise.kind == "empirical", f"unknown kind {promise.kind}"
    assert all(np.isfinite(figures)) == bounded, "a bound is finite, its absence is not"
    assert max(figures) == promise.ln_record, "a part cannot tell more than the whole record"
    assert promise.assumptions, "every guarantee has assumptions"


def check_weaker_promises_named(sanitizer: Sanitizer) -> None:
    """Bounds or medians from the data, and rows dropped by value, make a bound conditional."""
    rows = adapt_columns(make_table(), sanitizer)
    fitted = fit_sanitizer(sanitizer, rows)
    plain = scale_rows(rows, fitted).schema

    def mark(**flags: bool) -> Schema:
        return replace(plain, numeric=tuple(replace(each, **flags) for each in plain.numeric))

    marked = [replace(plain, drops_rows=True)]
    marked += [mark(from_data=True), mark(imputed=True)] if plain.numeric else []
    before = sanitizer.guarantee(plain, fitted)
    for schema in marked:
        promise = sanitizer.guarantee(schema, fitted)
        assert promise.kind != "bounded", "a bound that depends on private data is unconditional"
        assert set(promise.assumptions) > set(before.assumptions), "it does not say on what"
        assert set(sanitizer.list_weaker_promises(schema)) <= set(promise.assumptions), (
            "`ppdm check` names another promise than the card"
        )
        figures = ("ln_component", "ln_attribute", "ln_record")
        assert all(getattr(promise, name) == getattr(before, name) for name in figures)


def check_documented(cls: type[Sanitizer]) -> None:
    """Its docstring has every section, and describes exactly its parameters."""
    sections = split_docstring(cls)
    for section in SECTIONS:
        assert sections.get(section), f"its docstring does not say **{section}**"
    named = set(re.findall(r"``(\w+)``", sections["Broken by"]))
    assert named, "it names no attack that breaks it"
    assert named <= set(ATTACKS), f"not registered attacks: {sorted(named - set(ATTACKS))}"
    meaning, known = read_parameter_meanings(cls), {field.name for field in fields(cls)}
    assert set(meaning) == known, f"not under **Parameters**, or not one: {known ^ set(meaning)}"
    assert all(meaning.values()), "it leaves a parameter without a meaning"


def check_parameters_are_checked(cls: type[Sanitizer]) -> None:
    """Its example is accepted; a missing or unknown parameter gets one of our own messages."""
    assert not find_complaint(cls, cls.example), "it refuses its own example"
    unknown = find_complaint(cls, {**cls.example, "no_such_parameter": 1})
    assert unknown, "it takes a parameter that it does not have"
    for message in filter(None, (unknown, find_complaint(cls, {}))):
        assert message.endswith((".", "?")), f"not a sentence: {message}"


def find_complaint(cls: type[Sanitizer], parameters: Mapping[str, Any]) -> str:
    try:
        cls.from_parameters(parameters)
    except PpdmError as error:
        return str(error)
    except TypeError as error:
        raise AssertionError(f"not our own error: {error}") from None
    return ""


def check_named_alike(cls: type, key: str, ids: Mapping[str, Any]) -> None:
    """One name in four places: file, class, key, test id."""
    assert cls.name == key, f"registered as {key}, named {cls.name}"
    assert Path(inspect.getfile(cls)).stem == key, f"{key} lives in another file"
    assert cls.__name__ == "".join(word.capitalize() for word in key.split("_"))
    assert any(id_.split("-")[0] == key for id_ in ids), f"{key} has no line in cases.py"
