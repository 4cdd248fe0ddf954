"""The tables of the claims: public ones from PPDM_DATA, and generated ones."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical, Numeric, Schema
from studies.public_tables import get_data_folder, parse_numbers, read_columns

ORIGINS = Path(__file__).with_name("data.toml")
MAX_SMALL_RECORDS = 3_000
MERGED_IRIS = ("setosa", "versicolor")  # P2 has two classes of Iris
ADULT_COLUMNS = ("age", "education_num", "hours_per_week")
SYNTHETIC_CLUSTERS, CENTRE_REACH = 10, 5.0
GROWING = frozenset({"synthetic_2", "synthetic_8", "centres_2", "centres_8"})  # in a full run
MANY_GENERATED = GROWING | {"synthetic_50"}  # generated tables of more than 3,000 records
SOURCES = {  # tables that are made of others
    "iris_two": ("iris",),
    "svmguide1": ("svmguide1_train", "svmguide1_test"),
}


@dataclass(frozen=True)
class Origin:
    """A file of the data folder."""

    file: str
    sha256: str  # first 12 digits
    rows: int
    origin: str


@dataclass(frozen=True, eq=False)
class Table:
    """Numeric columns and the class of every record."""

    name: str
    X: Floats  # (n, d)
    label: Ints  # (n,)
    training: int | None = None  # records at the start that are for training, where that is given

    @property
    def n(self) -> int:
        return len(self.X)

    def make_rows(self, some: Ints | slice = slice(None)) -> ArrayRows:
        """Return some records as rows, with the observed range of all records as bounds."""
        return make_rows(self.X[some], self.label[some], self.X)


Maker = Callable[[np.random.Generator, bool], Table]


def make_rows(X: Floats, label: Ints, whole: Floats | None = None) -> ArrayRows:
    """Return records as rows; bounds are the ranges of ``whole``, by default of the records."""
    low, high = (bound(X if whole is None else whole) for bound in (find_lows, find_highs))
    numeric = tuple(
        Numeric(f"x{j}", float(a), float(b)) for j, (a, b) in enumerate(zip(low, high, strict=True))
    )
    classes = Categorical("label", tuple(str(code) for code in range(int(label.max()) + 1)))
    key = np.random.default_rng(1).integers(0, 256, size=(len(X), 16), dtype=np.uint8)
    return ArrayRows(Schema(numeric, label=classes), X, label.astype(np.int32), key)


def find_lows(X: Floats) -> Floats:
    """Return the least value of each column."""
    return np.asarray(X.min(axis=0))


def find_highs(X: Floats) -> Floats:
    """Return the largest value of each column."""
    return np.asarray(X.max(axis=0))


@lru_cache(maxsize=1)
def read_origins() -> Mapping[str, Origin]:
    """Return the public tables by name."""
    content = tomllib.loads(ORIGINS.read_text(encoding="utf-8"))
    return {name: Origin(**entry) for name, entry in content.items()}


def list_files(tables: Iterable[str]) -> dict[str, Origin]:
    """Return the public tables that these tables are made of."""
    names = dict.fromkeys(part for name in tables for part in SOURCES.get(name, (name,)))
    origins = read_origins()
    return {name: origins[name] for name in names if name in origins}


def check_data(tables: Iterable[str], folder: Path | None = None) -> None:
    """Raise BadInput that names missing or changed files and where they come from."""
    folder = folder or get_data_folder()
    missing, changed = [], []
    for each in list_files(tables).values():
        path = folder / each.file
        if not path.is_file():
            missing.append(f"{each.file} ({each.origin})")
        elif compute_digest(path) != each.sha256:
            changed.append(f"{each.file} (SHA-256 {each.sha256}...)")
    if missing:
        raise BadInput(
            f"The data folder {folder} lacks {', '.join(missing)}.",
            file=str(folder),
            remedy="Set PPDM_DATA to a folder with these files; studies/reproduction/data.toml "
            "lists origins and digests.",
        )
    if changed:
        raise BadInput(
            f"The data folder {folder} has other versions of {', '.join(changed)}.",
            file=str(folder),
            remedy="Replace them; studies/reproduction/data.toml lists origins and digests.",
        )


def compute_digest(path: Path) -> str:
    """Return the first 12 digits of the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def is_large(name: str) -> bool:
    """Return whether a table has more than 3,000 records."""
    files = list_files([name]).values()
    return name in MANY_GENERATED or sum(each.rows for each in files) > MAX_SMALL_RECORDS


def load(name: str, draw: int = 0, *, full: bool = False) -> Table:
    """Return a table; a generated one is another for each draw. Constant columns are left out."""
    if name in GENERATED:
        return GENERATED[name](np.random.default_rng([draw, 11]), full)
    return load_public(name)


@lru_cache(maxsize=4)
def load_public(name: str) -> Table:
    """Return a public table."""
    if name == "svmguide1":
        parts = [load_public(each) for each in SOURCES[name]]
        X, label = (np.concatenate([getattr(part, at) for part in parts]) for at in ("X", "label"))
        return Table(name, X, label, training=parts[0].n)
    columns = read_columns(get_data_folder(), SOURCES.get(name, (name,))[0])
    text = columns.pop("label")
    if name == "iris_two":
        text = np.where(np.isin(text, MERGED_IRIS), MERGED_IRIS[0], text)
    if name == "adult":
        columns = {head: columns[head] for head in ADULT_COLUMNS}
    cells = {head: column for head, column in columns.items() if len(set(column.tolist())) > 1}
    X = parse_numbers(cells, len(text))[1]
    return Table(name, X, np.unique(text, return_inverse=True)[1].astype(np.int64))


def build_cluster_maker(
    records: int, attributes: int, deviation: float, centre_deviation: float | None = None
) -> Maker:
    """Return a function that draws ten normal clusters about uniform centres, or normal ones."""

    def make(rng: np.random.Generator, full: bool) -> Table:
        n = records if full else min(records, 10_000)
        shape = SYNTHETIC_CLUSTERS, attributes
        if centre_deviation is None:
            centres = rng.uniform(-CENTRE_REACH, CENTRE_REACH, shape)
        else:
            centres = centre_deviation * rng.standard_normal(shape)
        label = rng.integers(0, SYNTHETIC_CLUSTERS, n)
        X = centres[label] + deviation * rng.standard_normal((n, attributes))
        return Table("clusters", X, label)

    return make


def draw_normal_plane(rng: np.random.Generator, full: bool) -> Table:
    """Draw 1,000 records of the two-dimensional normal law of P1."""
    X = rng.multivariate_normal([-10.0, 10.0], [[1.0, 1.5], [1.5, 3.0]], 1_000)
    return Table("normal_2d", X, np.zeros(len(X), dtype=np.int64))


GENERATED: dict[str, Maker] = {
    "synthetic_2": build_cluster_maker(100_000, 100, 2.0),
    "synthetic_8": build_cluster_maker(100_000, 100, 8.0),
    "centres_2": build_cluster_maker(100_000, 100, 1.0, centre_deviation=2.0),
    "centres_8": build_cluster_maker(100_000, 100, 1.0, centre_deviation=8.0),
    "synthetic_50": build_cluster_maker(10_000, 50, 2.0),
    "normal_2d": draw_normal_plane,
}
