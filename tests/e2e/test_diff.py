"""Two releases of a real home side by side."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from rich.console import Console

from ppdm.cli.diff import compare_releases, flatten
from ppdm.cli.schema import build_schema
from tests.support.history import TOKEN, History

PUBLISHED, REFUSED = "history-0001", "history-0004"


def read_diff(history: History, *names: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(history.release.ask("diff", *names, "--json").stdout)
    Draft202012Validator(build_schema("diff")).validate(content)
    return content


@pytest.mark.extended
def test_diff_other_method_settings_records_and_figures_of_both(history: History) -> None:
    found = read_diff(history, PUBLISHED, REFUSED)
    shown = json.loads(history.release.ask("show", REFUSED, "--json").stdout)["release"]
    settings = {one["name"]: (one["first"], one["second"]) for one in found["settings"]}
    assert settings["sanitizer.method"] == ("pca_laplace", "random_rotation")
    assert settings["sanitizer.b"] == (0.3, None)
    assert "base" not in settings and "dataset.name" not in settings
    assert (found["first"]["records"], found["second"]["records"]) == (480, 481)
    assert found["second"]["verdict"] == shown["verdict"] == "FAIL"
    scores = {one["name"]: one for one in found["scores"]}
    linked = next(one for one in shown["findings"] if one["check"] == "record_linkage.rate")
    assert scores["record_linkage.rate"]["second"]["value"] == linked["observed"]
    assert scores["record_linkage.rate"]["second"]["limit"] == linked["limit"]
    assert scores["transform_inverse.breach_rate"]["second"] is None  # it does not apply
    assert scores["knn_accuracy"]["kind"] == "utility"


def test_diff_same_settings_none_differ(history: History) -> None:
    found = read_diff(history, PUBLISHED, "history-0003")
    assert found["settings"] == []
    assert found["first"]["source"] != found["second"]["source"]


def test_diff_latest_without_settings_said(history: History) -> None:
    found = read_diff(history, PUBLISHED, "latest")
    assert found["settings"] is None and found["second"]["verdict"] is None
    assert (
        "ended before its file was stored"
        in history.release.ask("diff", PUBLISHED, "latest").stdout
    )


@pytest.mark.parametrize("other", [REFUSED, "history-0005", "latest"])
def test_diff_table_fits_80_columns_without_private_value(history: History, other: str) -> None:
    view = compare_releases(PUBLISHED, other, history.release.home).view
    out = StringIO()
    Console(file=out, width=80).print(view)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == [PUBLISHED, "history-0007" if other == "latest" else other]
    assert TOKEN not in out.getvalue()


@pytest.mark.extended
@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ((PUBLISHED, PUBLISHED), f"Both names stand for {PUBLISHED}."),
        ((PUBLISHED, "history-0099"), "There is no release 'history-0099'."),
        ((PUBLISHED, "histori/latest"), "There is no dataset 'histori' here."),
        ((PUBLISHED,), "Missing argument 'OTHER_ID'"),
    ],
)
def test_diff_bad_names_one_sentence(
    history: History, names: tuple[str, ...], sentence: str
) -> None:
    result = history.release.ask("diff", *names)
    assert result.exit_code == 2 and sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_flatten_nested_dicts_dotted_names_empty_left_out() -> None:
    content = {"a": {"b": 1, "c": {"d": [1, 2]}, "e": None}, "f": "x"}
    assert dict(flatten(content)) == {"a.b": 1, "a.c.d": [1, 2], "f": "x"}
