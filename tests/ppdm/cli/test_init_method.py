"""`ppdm init` on generated tables: the record id, the method and its basis."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from flows.config.release_file import load
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.sanitizers import SANITIZERS, make_sanitizer
from tests.support.drafts import NOISE, ROWS, Cell, draft_table, read_error, write_table
from tests.support.small_release import write_csv


def record_id(folder: Path, columns: dict[str, Cell], rows: int = ROWS) -> tuple[Any, ...]:
    file, _, text = draft_table(
        write_table(folder, {"other": lambda i: NOISE[-i - 1], **columns}, rows)
    )
    parameters = file.sanitizer_parameters()
    assert ("fitted on the released records" in text) == (parameters["basis"] == "private")
    return file.dataset.record_id, parameters["basis"], parameters["components"]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"key": lambda i: f"k{i * 7 % 120}"}, "key"),
        ({"key": lambda i: str(i)}, "key"),
        ({"token": lambda i: f"k{i * 7 % 120}"}, "token"),
        ({"token": lambda i: f"k{i * 7 % 120}", "key": lambda i: str(i)}, "key"),
        ({"Unnamed: 0": lambda i: str(i)}, None),
        ({"key": lambda i: str(i // 2)}, None),
        ({"key": lambda i: str(i) if i else ""}, None),
        ({"key": lambda i: f"{i}.5"}, None),
        ({"email": lambda i: f"{i}@x.org"}, None),
        ({"key date": lambda i: f"2021-03-01 {i}"}, None),
    ],
)
def test_draft_record_id_unique_and_stable_is_chosen(
    tmp_path: Path, columns: dict[str, Cell], expected: str | None
) -> None:
    basis = "private" if expected is None else "sample"
    assert record_id(tmp_path, columns) == (expected, basis, 2)


def test_draft_basis_small_table_asks_for_few_components(tmp_path: Path) -> None:
    key: dict[str, Cell] = {"key": lambda i: f"k{i}"}
    assert record_id(tmp_path, key, 30)[1] == "private"  # a fifth of them is too few
    assert record_id(tmp_path, key, 2)[2] == 1
    collinear = {**key, "other": lambda i: f"{2 * float(NOISE[i]) + 1:.6f}"}
    assert record_id(tmp_path, collinear)[1:] == ("sample", 1)
    assert record_id(tmp_path, {"other": lambda i: f"{-float(NOISE[i]):.6f}"})[1:] == ("private", 1)
    # One direction lives in few records, which the fifth that is set aside may lack.
    rare = {**collinear, "flag": lambda i: str(int(i in (3, 5)))}
    assert record_id(tmp_path, rare)[1:] == ("sample", 1)
    source = tmp_path / "one.csv"
    write_csv(source, [{"key": f"k{i}", "flag": str(int(i in (3, 5)))} for i in range(ROWS)])
    assert draft_table(source)[0].sanitizer_parameters()["basis"] == "private"


@pytest.mark.parametrize(
    ("head", "cells", "method"),
    [
        ("x,y", lambda i: f"{i * 37 % 101},{i * 53 % 97}", "pca_laplace"),
        ("c,class", lambda i: f"{'abc'[i % 3]},{'xy'[i % 2]}", "randomized_response"),
        ("x,c,y", lambda i: f"{i * 37 % 101},{'abc'[i % 3]},{i * 53 % 97}", "pipeline"),
    ],
)
def test_draft_method_suits_kinds_of_columns(
    tmp_path: Path, head: str, cells: Cell, method: str
) -> None:
    source = tmp_path / "t.csv"
    source.write_text("\n".join([f"key,{head}", *(f"k{i},{cells(i)}" for i in range(300))]))
    file, _, _ = draft_table(source)
    assert file.sanitizer.method == method


def write_numbers(folder: Path) -> Path:
    return write_table(folder, {"key": lambda i: f"k{i}", "other": lambda i: NOISE[-i - 1]})


@pytest.mark.extended
@pytest.mark.parametrize("name", SANITIZERS)
def test_draft_method_named_has_settings_attacks_and_limits(tmp_path: Path, name: str) -> None:
    """The draft of every method passes all checks that need no data, or is refused at once."""
    source = write_numbers(tmp_path)
    if SANITIZERS[name].accepts != {"numeric"}:
        error = read_error(source, method=name)
        assert f"Method '{name}'" in error.message and "Use method 'pca_laplace'" in str(error)
        return
    file, result, text = draft_table(source, method=name)
    assert file.sanitizer.method == name and len(file.audit.required) >= 3
    is_bounded = "NO WORST-CASE BOUND" not in text
    assert is_bounded != ("**Guarantee**: none" in str(SANITIZERS[name].__doc__))
    assert is_bounded != any("no worst-case bound" in each for each in result.payload["decisions"])
    assert max(map(len, text.splitlines())) < 100
    example = Path(f"examples/{name}.toml")
    if example.exists():
        assert file.audit.required == load(example).audit.required


def test_draft_method_with_a_bound_keeps_the_drafted_limit(tmp_path: Path) -> None:
    file, _, _ = draft_table(write_numbers(tmp_path), method="additive_noise")
    schema = Schema((Numeric("plain", 0, 1), Numeric("other", 0, 1)))
    guarantee = make_sanitizer("additive_noise", file.sanitizer_parameters()).guarantee(schema, {})
    assert 500 < math.exp(guarantee.ln_record) <= file.limits["amplification.record"].value


def test_draft_method_unknown_bad_input(tmp_path: Path) -> None:
    error = read_error(write_numbers(tmp_path), method="random_rotaton")
    assert str(error) == "Unknown method 'random_rotaton'. Did you mean 'random_rotation'?"


def test_draft_method_for_other_columns_bad_input(tmp_path: Path) -> None:
    source = write_table(tmp_path, {"ward": lambda i: "nsew"[i % 4], "x": lambda i: NOISE[-i]})
    error = read_error(source, method="random_rotation")
    assert "takes only numeric features, and column 'ward' of t.csv is categorical" in error.message
    assert error.remedy == "Use method 'pipeline', which takes all columns of this table."


def test_draft_method_of_two_columns_on_one_bad_input(tmp_path: Path) -> None:
    error = read_error(write_table(tmp_path, {}), method="random_projection")
    assert "does not suit the columns of t.csv" in error.message


def test_draft_record_id_named_or_left_out(tmp_path: Path) -> None:
    cells = {
        "key": lambda i: f"k{i}",
        "code": lambda i: f"c{i * 7}",
        "twice": lambda i: str(i // 2),
    }
    source = write_table(tmp_path, cells)
    assert draft_table(source, record_id="code")[0].dataset.record_id == "code"
    assert draft_table(source, record_id=None)[0].dataset.record_id is None
    (tmp_path / "draft.toml").unlink()
    assert "empty or repeated cells" in read_error(source, record_id="twice").message
    assert "no column 'kye'" in read_error(source, record_id="kye").message
    assert "cannot be the label" in read_error(source, record_id="code", label="code").message
