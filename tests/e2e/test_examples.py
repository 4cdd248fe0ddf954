"""Every example does what its comment says, and its method also runs on another table."""

from __future__ import annotations

import csv
import gzip
import json
import math
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ppdm.example_tables import TABLES
from tests.support.forkserver import Result
from tests.support.slow_cases import mark_exhaustive
from tests.support.small_release import Row, Small

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = {path.stem: path for path in (ROOT / "examples").glob("*.toml")}
PAGE = ROOT / "docs" / "choosing_a_method.md"
TOLERANCE = 12  # percentage points: the page reports another key
MOST_ROWS = 700
ID = "patient_id"  # what the examples call it
NO_BOUND, ACCURACY = "amplification.record", "best_accuracy"
LINKED, KNOWN = "record_linkage.rate", "known_pairs.breach_rate"
INVERTED = "transform_inverse.breach_rate"
INFERRED = "attribute_inference.inference_rate"
MEMBER, NOT_ASKED = "membership.true_positive_rate", "covered.membership"
BROKEN = frozenset({NO_BOUND, LINKED, KNOWN, MEMBER})
BY_CHANCE = frozenset({LINKED, KNOWN, MEMBER, ACCURACY})  # random directions: good or bad ones
NO_BOUND_AT_LEAST = BY_CHANCE | {NO_BOUND}
# Of so few records a half may be too small to be drawn from.
SMALL = frozenset({"self_test.policy", "required.membership", NOT_ASKED})


@dataclass(frozen=True)
class Case:
    example: str
    table: str
    released: tuple[str, ...] = ()  # columns that leave; none: it is refused
    refused_by: frozenset[str] = frozenset()  # every check that does not pass
    waits: bool = False  # people decide; on another table, unless a draw surely breaks a limit
    either: frozenset[str] = frozenset()  # of those that are so close that another draw may pass
    numbers: tuple[str, ...] = ()  # features of the other table; none: all columns
    words: tuple[str, ...] = ()  # categorical ones

    @property
    def is_own(self) -> bool:
        return self.table == str(content(self.example)["source"]["path"]).split(".")[0]


WORDS = (
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native_country",
)
CELLS = ("cell_size_uniformity", "cell_shape_uniformity")
NUCLEI = ("bare_nuclei", "bland_chromatin", "normal_nucleoli")

CASES = (
    Case("wdbc_pca_laplace", "wdbc", ("component_1", "diagnosis")),
    Case("wdbc_pca_laplace", "breast_cancer_wisconsin", ("component_1", "label")),
    Case("additive_noise", "wdbc", ("worst_perimeter", "worst_concave_points", "diagnosis")),
    # Two columns with ten values each: even a copy hardly reveals who is in it.
    Case(
        "additive_noise",
        "breast_cancer_wisconsin",
        refused_by=frozenset({NOT_ASKED}),
        waits=True,
        numbers=CELLS,
    ),
    Case("wdbc_rotation", "wdbc", refused_by=BROKEN),
    Case("wdbc_rotation", "wine", refused_by=BROKEN),
    Case("random_projection", "wdbc", refused_by=NO_BOUND_AT_LEAST, either=BY_CHANCE),
    Case("random_projection", "ionosphere", refused_by=NO_BOUND_AT_LEAST, either=BY_CHANCE),
    Case("dct_fuzzy", "wdbc", refused_by=BROKEN),
    Case("dct_fuzzy", "wine", refused_by=BROKEN),
    Case("nonmetric_mds", "wdbc", refused_by=BROKEN, either=frozenset({MEMBER})),
    Case("nonmetric_mds", "wine", refused_by=BROKEN),
    Case("kde_resample", "wdbc", refused_by=frozenset({NO_BOUND, LINKED, MEMBER})),
    Case(
        "kde_resample",
        "iris",
        refused_by=frozenset({NO_BOUND, LINKED, INVERTED, MEMBER}) | SMALL,
        either=SMALL | {MEMBER},
    ),
    Case("randomized_response", "census", refused_by=frozenset({NOT_ASKED}), waits=True),
    Case(
        "randomized_response",
        "breast_cancer_wisconsin",
        # Few columns: each reveals more, and fewer scores can be judged. About 7 % of the persons
        # are found, which is so close to the limit of 5 % that some draws are refused.
        refused_by=frozenset({LINKED, INFERRED, NOT_ASKED, "covered.reconstruction"}),
        either=frozenset({INFERRED, "covered.reconstruction"}),
        waits=True,
        words=NUCLEI,
    ),
    Case("pipeline", "census", ("component_1", "component_2", *WORDS, "label")),
    Case(
        "pipeline",
        "breast_cancer_wisconsin",
        ("component_1", "component_2", *NUCLEI, "label"),
        numbers=("clump_thickness", "marginal_adhesion", *CELLS),
        words=NUCLEI,
    ),
)


def content(example: str) -> dict[str, Any]:
    return tomllib.loads(EXAMPLES[example].read_text())


def test_examples_each_method_two_tables() -> None:
    assert {case.example for case in CASES} == set(EXAMPLES)
    tables: dict[str, set[str]] = {}
    for case in CASES:
        tables.setdefault(content(case.example)["sanitizer"]["method"], set()).add(case.table)
    assert {len(names) for names in tables.values()} == {2}


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    mark_exhaustive(CASES, slow=[case for case in CASES if case.is_own]),
    ids=lambda case: f"{case.example}-{case.table}",
)
def test_example_released_matches_its_comment(
    case: Case,
    tmp_path: Path,
    release_in: Callable[..., Small],
    prefect_api: str,
    request: pytest.FixtureRequest,
) -> None:
    if case.is_own:
        rows = own_rows(case.table)
    else:
        rows = read(request.getfixturevalue("shared_data"), case.table)
    release = prepare_release(case, tmp_path, rows, release_in)
    result = release.run("release", "--json")
    found = json.loads(result.stdout)["release"]
    assert found["method"] == release.content["sanitizer"]["method"]
    failed = {each["check"] for each in found["findings"] if each["outcome"] != "PASS"}
    assert case.refused_by - case.either <= failed <= case.refused_by
    if case.released:
        check_published(case, release, result)
    else:
        is_broken = any(each["outcome"] == "FAIL" for each in found["findings"])
        waits = case.waits if case.is_own else case.waits and not is_broken
        ending = (4, "awaiting_review") if waits else (3, "refused")
        assert (result.exit_code, found["stage"]) == ending
        assert release.versions() == []
    if case.is_own:
        check_words(case, found)


def check_published(case: Case, release: Small, result: Result) -> None:
    assert (result.exit_code, release.versions()) == (0, ["0001"])
    folder = release.published / "latest"
    table = pq.read_table(folder / "data.parquet")
    assert tuple(table.column_names) == case.released
    aside = release.content["sanitizer"].get("basis_share", 0)
    assert abs(table.num_rows - (1 - aside) * len(release.rows)) < 0.05 * len(release.rows)
    for name in set(case.released) & set(release.content["columns"]):
        allowed = release.content["columns"][name].get("categories")
        if allowed:
            assert set(table.column(name).to_pylist()) <= {*allowed, None}
    copy = release.folder / "copy"
    shutil.copytree(folder, copy)
    assert release.ask("verify", str(copy)).exit_code == 0


def check_words(case: Case, found: dict[str, Any]) -> None:
    """The comment at the top of the file and the page on all methods say what happens."""
    comment = EXAMPLES[case.example].read_text().split("format =")[0]
    head = " ".join(line.strip("# ") for line in comment.split("\n"))
    verb = "leaves" if case.waits else "approves" if case.released else "refuses"
    assert f"gate {verb}" in head
    observed = {
        each["check"]: 100 * each["observed"]
        for each in found["findings"]
        if each["check"] in (LINKED, KNOWN, INVERTED, ACCURACY) and each["observed"] is not None
    }
    if "reads all others" in head:
        assert observed[KNOWN] == 100
    if "reads most of the others" in head:
        assert 50 < observed[KNOWN] < 100
    if "finds the row" in head:
        assert observed[LINKED] > 50
    reported = figures(found["method"])
    assert reported["gate"].split()[0] == verb
    recovered = INVERTED if found["method"] == "kde_resample" else KNOWN
    for title, check in (("found", LINKED), ("recovered", recovered), ("classified", ACCURACY)):
        if check in observed:
            assert float(reported[title]) == pytest.approx(observed[check], abs=TOLERANCE)


def figures(method: str) -> dict[str, str]:
    """The line of the method in the page's table."""
    lines = PAGE.read_text().split("## What the gate measured")[1].splitlines()
    cells = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    (found,) = (each for each in cells if each[0] == method)
    return dict(zip(cells[0], found, strict=True))


def prepare_release(
    case: Case, folder: Path, rows: list[Row], release_in: Callable[..., Small]
) -> Small:
    """The example with its own table, or with another one in its place."""
    context = content(case.example)
    has_id = "record_id" in context["dataset"]
    if not case.is_own:
        context["columns"] = columns_for(case, rows)
        context["defaults"] = {"missing": "median"}
        context["dataset"]["name"] = case.table
        if has_id:
            rows = [{ID: f"p{i:05d}", **row} for i, row in enumerate(rows)]
            context["columns"][ID] = {"role": "identifier"}
    release = release_in(folder, context["dataset"]["name"], rows)
    context["source"] = release.content["source"]
    release.content = context
    return release.write()


def own_rows(name: str) -> list[Row]:
    return list(csv.DictReader(TABLES[f"{name}.csv"]().decode().splitlines()))


def read(shared_data: Path, name: str) -> list[Row]:
    path = next(shared_data.glob(f"{name}.csv*"))
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return list(islice(csv.DictReader(file), MOST_ROWS))


def columns_for(case: Case, rows: list[Row]) -> dict[str, Any]:
    """Return roles, bounds and categories as a steward who knows the table would declare them."""
    numbers = case.numbers or (() if case.words else tuple(rows[0])[:-1])
    columns: dict[str, Any] = {name: {"role": "exclude"} for name in rows[0]}
    for name in numbers:
        low, high = round_bounds([float(row[name]) for row in rows if row[name]])
        columns[name] = {"role": "feature", "type": "numeric", "low": low, "high": high}
    for name in case.words:
        cells = sorted({row[name] for row in rows if row[name]})
        word = {"role": "feature", "type": "categorical", "missing": "keep"}
        columns[name] = {**word, "categories": cells}
    labels = sorted({row["label"] for row in rows})
    columns["label"] = {"role": "label", "type": "categorical", "categories": labels}
    return columns


def round_bounds(values: list[float]) -> tuple[float, float]:
    """0, or minus the next round number, to the next round number: 1, 2 or 5 and zeros."""
    low, high = min(values), max(values)
    return (-round_up(-low) if low < 0 else 0.0, round_up(high) if high > 0 else 1.0)


def round_up(value: float) -> float:
    unit = 10.0 ** math.floor(math.log10(value))
    return next(step * unit for step in (1, 2, 5, 10) if step * unit >= value)
