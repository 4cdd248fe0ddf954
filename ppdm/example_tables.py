"""The tables of the examples: one that scikit-learn contains, and one that is invented here."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

CENSUS_RECORDS = 700
EDUCATION = {  # in order of the number of years; the shares of each
    "Preschool": 0.002, "1st-4th": 0.005, "5th-6th": 0.01, "7th-8th": 0.02, "9th": 0.016,
    "10th": 0.028, "11th": 0.036, "12th": 0.013, "HS-grad": 0.325, "Some-college": 0.224,
    "Assoc-voc": 0.042, "Assoc-acdm": 0.033, "Bachelors": 0.164, "Masters": 0.053,
    "Prof-school": 0.017, "Doctorate": 0.012,
}  # fmt: skip
WORKCLASS = {
    "Private": 0.70, "Self-emp-not-inc": 0.08, "Local-gov": 0.065, "State-gov": 0.04,
    "Self-emp-inc": 0.035, "Federal-gov": 0.03, "": 0.05,
}  # fmt: skip
MANUAL_WORK = {
    "Craft-repair": 0.20, "Other-service": 0.16, "Adm-clerical": 0.17, "Sales": 0.13,
    "Machine-op-inspct": 0.11, "Transport-moving": 0.09, "Handlers-cleaners": 0.08,
    "Farming-fishing": 0.06,
}  # fmt: skip
OFFICE_WORK = {
    "Prof-specialty": 0.36, "Exec-managerial": 0.30, "Sales": 0.12, "Adm-clerical": 0.10,
    "Tech-support": 0.06, "Protective-serv": 0.06,
}  # fmt: skip
FORMERLY_MARRIED = {"Divorced": 0.68, "Widowed": 0.18, "Separated": 0.14}
SINGLE_HOUSEHOLD = {"Not-in-family": 0.68, "Unmarried": 0.26, "Other-relative": 0.06}
RACE = {
    "White": 0.855, "Black": 0.095, "Asian-Pac-Islander": 0.03, "Amer-Indian-Eskimo": 0.01,
    "Other": 0.01,
}  # fmt: skip
COUNTRY = {
    "United-States": 0.90, "Mexico": 0.02, "Philippines": 0.01, "Germany": 0.01, "Canada": 0.01,
    "India": 0.01, "Cuba": 0.01, "China": 0.01, "": 0.02,
}  # fmt: skip


def make_wdbc() -> bytes:
    """Return scikit-learn's copy of the Wisconsin diagnostic table, with invented patient ids."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names]
    rows = (
        [f"P{100_000 + 7 * i}", data.target_names[target], *map(repr, values.tolist())]
        for i, (values, target) in enumerate(zip(data.data, data.target, strict=True))
    )
    return write_csv(["patient_id", "diagnosis", *names], rows)


def make_census() -> bytes:
    """Return invented records with the columns of the Adult census table; empty cells are unknown.

    Only ``random`` is drawn from the generator, whose values are the same in every version.
    """
    n, rng = CENSUS_RECORDS, np.random.default_rng(1994)

    def choose(shares: Mapping[str, float]) -> NDArray[Any]:
        edges = np.cumsum(list(shares.values())) / sum(shares.values())
        return np.array([*shares])[np.searchsorted(edges[:-1], rng.random(n), side="right")]

    age = 17 + np.floor(60 * rng.random(n) ** 1.6)
    is_male = rng.random(n) < 0.67
    education = choose(EDUCATION)
    years = np.array([1 + [*EDUCATION].index(each) for each in education])
    was_married = rng.random(n) < np.clip((age - 19) / 16, 0.0, 0.92)
    is_married = was_married & (rng.random(n) < np.where(is_male, 0.82, 0.45))
    spouse = np.where(is_male, "Husband", "Wife")
    is_child = ~was_married & (rng.random(n) < np.clip((32 - age) / 14, 0.0, 0.8))
    relationship = np.where(is_child, "Own-child", choose(SINGLE_HOUSEHOLD))
    marital_status = np.where(was_married, choose(FORMERLY_MARRIED), "Never-married")
    workclass = choose(WORKCLASS)
    is_office = rng.random(n) < np.clip((years - 6) / 9, 0.05, 0.9)
    occupation = np.where(is_office, choose(OFFICE_WORK), choose(MANUAL_WORK))
    hours = np.where(rng.random(n) < 0.5, 40, 20 + np.floor(45 * rng.random(n)))
    score = 0.35 * (years - 10) + 0.05 * (hours - 40) + 0.03 * (age - 38) + 2.2 * is_married - 2.6
    is_high = rng.random(n) < 1 / (1 + np.exp(-score))
    gain = np.where(rng.random(n) < np.where(is_high, 0.2, 0.04), 2_000 * rng.random(n), 0)
    gain = np.floor(gain * np.where(is_high, 8, 2))
    loss = np.where(rng.random(n) < 0.05, 1_400 + np.floor(700 * rng.random(n)), 0)
    columns = {
        "age": age,
        "workclass": workclass,
        "fnlwgt": 20_000 + np.floor(300_000 * rng.random(n)),
        "education": education,
        "education_num": years,
        "marital_status": np.where(is_married, "Married-civ-spouse", marital_status),
        "occupation": np.where(workclass == "", "", occupation),
        "relationship": np.where(is_married, spouse, relationship),
        "race": choose(RACE),
        "sex": np.where(is_male, "Male", "Female"),
        "capital_gain": gain,
        "capital_loss": loss,
        "hours_per_week": hours,
        "native_country": choose(COUNTRY),
        "label": np.where(is_high, ">50K", "<=50K"),
    }
    cells = [
        column if column.dtype.kind == "U" else column.astype(int) for column in columns.values()
    ]
    return write_csv([*columns], zip(*cells, strict=True))


def write_csv(names: Sequence[str], rows: Iterable[Iterable[object]]) -> bytes:
    """Return a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue().encode()


TABLES: dict[str, Callable[[], bytes]] = {"wdbc.csv": make_wdbc, "census.csv": make_census}
