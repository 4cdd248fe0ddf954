"""docs/choosing_a_method.md agrees with the methods and their docstrings."""

from __future__ import annotations

import json
import math
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ppdm.cli.methods import split_docstring
from ppdm_core.attacks import ATTACKS
from ppdm_core.sanitizers import SANITIZERS
from studies import draw_methods

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "choosing_a_method.md"
METHODS = list(SANITIZERS)

# Settings of a method with another kind of guarantee than the setting of its picture.
OTHER_SETTINGS: dict[str, list[dict[str, Any]]] = {
    "pca_laplace": [{"basis": "private"}],
    "additive_noise": [{"law": "normal"}, {"law": "uniform"}, {"scale": "zscore"}],
    "pipeline": [
        {"numeric": {"method": "random_rotation"}},
        {"numeric": {"method": "pca_laplace", "components": 1, "b": 0.3, "basis": "private"}},
    ],
}


run_cached = cache(draw_methods.run_method)


def read_sections() -> dict[str, str]:
    """Return the sections of the page by heading."""
    _, *found = re.split(r"^## (.+)\n", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(found[::2], found[1::2], strict=True))


def read_item(method: str, title: str) -> str:
    """Return one item of the list in a method's section, on one line."""
    found = re.search(rf"^\* \*\*{title}\*\*(.*?)(?=^\* |\Z)", read_sections()[method], re.M | re.S)
    assert found, f"{method}: no item {title}"
    return " ".join(found[1].split())


def test_methods_page_one_section_per_method() -> None:
    assert [title for title in read_sections() if "_" in title or title == "pipeline"] == list(
        draw_methods.PARAMETERS
    )
    assert set(draw_methods.PARAMETERS) == set(SANITIZERS)


@pytest.mark.parametrize("method", METHODS)
def test_methods_page_section_picture_and_example(method: str) -> None:
    text = read_sections()[method]
    assert re.findall(r"!\[.+\]\((.+)\)", text) == [f"pictures/methods/{method}.png"]
    (example,) = re.findall(r"\]\(\.\./(examples/.+\.toml)\)", read_item(method, "Example:"))
    content = tomllib.loads((ROOT / example).read_text())
    assert content["sanitizer"]["method"] == method
    for title in ("Use it", "Do not use it", "Settings:"):
        assert read_item(method, title)


@pytest.mark.parametrize("method", METHODS)
def test_methods_page_guarantee_matches_method(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {run_cached(method).guarantee.kind}
    for other in OTHER_SETTINGS.get(method, []):
        changed = {**draw_methods.PARAMETERS[method], **other}
        monkeypatch.setitem(draw_methods.PARAMETERS, method, changed)
        kinds.add(draw_methods.run_method(method).guarantee.kind)
        monkeypatch.undo()
    named = set(
        re.findall(r"`(bounded|bounded_given_basis|empirical)`", read_item(method, "Guarantee:"))
    )
    assert named == kinds


@pytest.mark.parametrize("method", METHODS)
def test_methods_page_broken_by_matches_docstring(method: str) -> None:
    docstring = set(re.findall(r"``(\w+)``", split_docstring(SANITIZERS[method])["Broken by"]))
    page = set(re.findall(r"`(\w+)`", read_item(method, "Broken by")))
    assert docstring & set(ATTACKS) <= page & set(ATTACKS)


@pytest.mark.parametrize("method", METHODS)
def test_method_picture_values_match_method(method: str) -> None:
    """Compare the values, not the pixels, which depend on fonts."""
    example = run_cached(method)
    with Image.open(ROOT / "docs" / "pictures" / "methods" / f"{method}.png") as picture:
        picture.load()
        shown = json.loads(picture.text["Released"])
    assert np.array_equal(shown["C"], example.after.C)
    # A layout may place a few points elsewhere on other hardware.
    difference = np.abs(np.reshape(shown["X"], example.after.X.shape) - example.after.X)
    assert difference.size == 0 or np.median(difference) < 0.001


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pca_laplace", "randomized_response", "pipeline"])
def test_save_figure_current_method_same_picture(method: str, tmp_path: Path) -> None:
    """Compare one picture of each kind."""
    stored = ROOT / "docs" / "pictures" / "methods" / f"{method}.png"
    made = draw_methods.save_figure(run_cached(method), tmp_path)
    with Image.open(stored) as one, Image.open(made) as other:
        assert one.size == other.size
        difference = np.abs(np.asarray(one, dtype=float) - np.asarray(other, dtype=float))
    assert difference.mean() < 5  # of 255: fonts may differ a little


def test_methods_page_captions_match_pictures() -> None:
    """Figures in the captions must follow the settings of the pictures."""
    examples = {method: run_cached(method) for method in METHODS}
    gammas = {
        method: round(math.exp(example.guarantee.ln_record))
        for method, example in examples.items()
        if math.isfinite(example.guarantee.ln_record)
    }
    assert gammas == {
        "pca_laplace": 1000,
        "additive_noise": 989,
        "randomized_response": 9,
        "pipeline": 94,
    }
    for method, gamma in gammas.items():
        assert re.search(rf"\b{gamma:,}\b", read_sections()[method])
    resampled = examples["kde_resample"]
    a, b = resampled.before.n - 2, resampled.before.n - 1
    assert resampled.after.n == resampled.before.n
    assert a not in resampled.after.record and b in resampled.after.record
    answers = examples["randomized_response"]
    assert (answers.before.C[-2:] != answers.after.C[-2:]).any(axis=1).all()
