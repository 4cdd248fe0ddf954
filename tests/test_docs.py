"""What docs/choosing_a_method.md says of the methods is what they say of themselves."""

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

from ppdm.cli.methods import sections
from ppdm_core.attacks import ATTACKS
from ppdm_core.sanitizers import SANITIZERS
from studies import draw_methods

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "choosing_a_method.md"
METHODS = list(SANITIZERS)

# Settings of a method that promise something else than those of its picture.
OTHERS: dict[str, list[dict[str, Any]]] = {
    "pca_laplace": [{"basis": "private"}],
    "additive_noise": [{"law": "normal"}, {"law": "uniform"}, {"scale": "zscore"}],
    "pipeline": [
        {"numeric": {"method": "random_rotation"}},
        {"numeric": {"method": "pca_laplace", "components": 1, "b": 0.3, "basis": "private"}},
    ],
}


played = cache(draw_methods.play)


def parts() -> dict[str, str]:
    """The page by its headings."""
    _, *found = re.split(r"^## (.+)\n", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(found[::2], found[1::2], strict=True))


def item(method: str, title: str) -> str:
    """One item of the list in a method's section, on one line."""
    found = re.search(rf"^\* \*\*{title}\*\*(.*?)(?=^\* |\Z)", parts()[method], re.M | re.S)
    assert found, f"{method}: no item {title}"
    return " ".join(found[1].split())


def test_the_sections_are_the_methods() -> None:
    assert [title for title in parts() if "_" in title or title == "pipeline"] == list(
        draw_methods.PARAMETERS
    )
    assert set(draw_methods.PARAMETERS) == set(SANITIZERS)


@pytest.mark.parametrize("method", METHODS)
def test_a_section_names_picture_and_example(method: str) -> None:
    text = parts()[method]
    assert re.findall(r"!\[.+\]\((.+)\)", text) == [f"pictures/methods/{method}.png"]
    (example,) = re.findall(r"\]\(\.\./(examples/.+\.toml)\)", item(method, "Example:"))
    content = tomllib.loads((ROOT / example).read_text())
    assert content["sanitizer"]["method"] == method
    for title in ("Take it", "Not", "Settings:"):
        assert item(method, title)


@pytest.mark.parametrize("method", METHODS)
def test_the_guarantee_is_that_of_the_method(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {played(method).guarantee.kind}
    for other in OTHERS.get(method, []):
        changed = {**draw_methods.PARAMETERS[method], **other}
        monkeypatch.setitem(draw_methods.PARAMETERS, method, changed)
        kinds.add(draw_methods.play(method).guarantee.kind)
        monkeypatch.undo()
    told = set(re.findall(r"`(bounded|bounded_given_basis|empirical)`", item(method, "Guarantee:")))
    assert told == kinds


@pytest.mark.parametrize("method", METHODS)
def test_it_is_broken_by_the_attacks_that_the_docstring_names(method: str) -> None:
    docstring = set(re.findall(r"``(\w+)``", sections(SANITIZERS[method])["Broken by"]))
    page = set(re.findall(r"`(\w+)`", item(method, "Broken by")))
    assert docstring & set(ATTACKS) <= page & set(ATTACKS)


@pytest.mark.parametrize("method", METHODS)
def test_a_picture_shows_what_the_method_does_today(method: str) -> None:
    """The numbers, not the pixels, which depend on fonts."""
    scene = played(method)
    with Image.open(ROOT / "docs" / "pictures" / "methods" / f"{method}.png") as picture:
        picture.load()
        shown = json.loads(picture.text["Released"])
    assert np.array_equal(shown["C"], scene.after.C)
    # Another kind of machine may lay out a few points elsewhere.
    difference = np.abs(np.reshape(shown["X"], scene.after.X.shape) - scene.after.X)
    assert difference.size == 0 or np.median(difference) < 0.001


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pca_laplace", "randomized_response", "pipeline"])
def test_a_picture_can_be_drawn_anew(method: str, tmp_path: Path) -> None:
    """One for each kind of picture."""
    kept = ROOT / "docs" / "pictures" / "methods" / f"{method}.png"
    made = draw_methods.save(played(method), tmp_path)
    with Image.open(kept) as one, Image.open(made) as other:
        assert one.size == other.size
        difference = np.abs(np.asarray(one, dtype=float) - np.asarray(other, dtype=float))
    assert difference.mean() < 5  # of 255: fonts may differ a little


def test_the_captions_tell_the_numbers_of_the_pictures() -> None:
    """Who changes a setting of a picture must look at its caption, too."""
    scenes = {method: played(method) for method in METHODS}
    gammas = {
        method: round(math.exp(scene.guarantee.ln_record))
        for method, scene in scenes.items()
        if math.isfinite(scene.guarantee.ln_record)
    }
    assert gammas == {
        "pca_laplace": 1000,
        "additive_noise": 989,
        "randomized_response": 9,
        "pipeline": 94,
    }
    for method, gamma in gammas.items():
        assert re.search(rf"\b{gamma:,}\b", parts()[method])
    resampled = scenes["kde_resample"]
    a, b = resampled.before.n - 2, resampled.before.n - 1
    assert resampled.after.n == resampled.before.n
    assert a not in resampled.after.record and b in resampled.after.record
    answers = scenes["randomized_response"]
    assert (answers.before.C[-2:] != answers.after.C[-2:]).any(axis=1).all()
