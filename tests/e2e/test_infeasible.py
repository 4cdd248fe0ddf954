"""By the command: a method that cannot be done with this file or these records is exit code 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.test_bad_input import check_complaint, check_nothing_left
from tests.support.small_release import FEATURES, Small

pytestmark = pytest.mark.slow
Maker = Callable[..., Small]


def method(release: Small, **parameters: Any) -> None:
    release.content["sanitizer"] = parameters
    release.write()


def one_column(release: Small) -> None:
    for name in FEATURES[1:]:
        release.content["columns"][name] = {"role": "exclude"}
    method(release, method="nonmetric_mds", dimensions=1)


def too_many_components(release: Small) -> None:
    method(release, method="pca_laplace", components=5, b=0.3)


def little_noise(release: Small) -> None:
    method(release, method="additive_noise", b=0.008)


def no_width(release: Small) -> None:
    release.content["columns"]["iron"]["low"] = 10
    release.write()


BY_FILE: dict[str, tuple[Callable[[Small], None], str]] = {
    "one column": (one_column, "at least 2 features; there is 1.*Give more columns"),
    "components": (too_many_components, r"an int in \[1, 4\]\. Got 5\. Change 'components'"),
    "60 b": (little_noise, r"'b' parameter of AdditiveNoise must be above 1/120.*Change 'b'"),
    "no width": (no_width, "'iron' has low = 10 and high = 10.*Declare low < high"),
}


def rank(release: Small) -> None:
    for row in release.rows:
        row["iron"] = row["pulse"]
    method(release, method="pca_laplace", components=4, b=0.5, basis="private")


def class_of_one(release: Small) -> None:
    release.content["columns"]["mood"]["categories"].append("alone")
    release.rows[5]["mood"] = "alone"
    method(release, method="kde_resample")


def little_noise_for_scores(release: Small) -> None:
    method(release, method="pca_laplace", components=1, b=0.009, basis="private")


BY_RECORDS: dict[str, tuple[Callable[[Small], None], str]] = {
    "rank": (rank, r"an int in \[1, 3\]\. Got 4\. Lower 'components'"),
    "class of one": (class_of_one, '1 of the classes had one record.*lonely = "merge"'),
    "60 b": (little_noise_for_scores, "cannot come from all inputs.*Raise 'b' to"),
}


@pytest.mark.parametrize("command", ["check", "release"])
@pytest.mark.parametrize("what", BY_FILE)
def test_release_infeasible_file_bad_input(what: str, command: str, small: Maker) -> None:
    spoil, words = BY_FILE[what]
    release = small()
    spoil(release)
    check_complaint(release.run(command), words, None)
    assert not release.private.exists() and not release.published.exists()


@pytest.mark.parametrize("what", BY_RECORDS)
def test_release_infeasible_records_bad_input(what: str, small: Maker) -> None:
    spoil, words = BY_RECORDS[what]
    release = small()
    spoil(release)
    check_complaint(release.run("check"), words, None)
    check_complaint(release.run("release"), words, None)
    check_nothing_left(release)
