"""Kinds of releases that are unsafe, each with a proof, and kinds that are safe."""

from __future__ import annotations

from tests.support.release_kinds.channels import SIDE_CHANNELS
from tests.support.release_kinds.classic import CLASSIC
from tests.support.release_kinds.column_maps import COLUMN_MAPS
from tests.support.release_kinds.few_persons import FEW_PERSONS
from tests.support.release_kinds.kinds import Kind
from tests.support.release_kinds.later_kinds import LATER_KINDS
from tests.support.release_kinds.later_safe import LATER_SAFE_KINDS
from tests.support.release_kinds.mixed_records import MIXED_RECORDS
from tests.support.release_kinds.newest_kinds import NEWEST_KINDS
from tests.support.release_kinds.noise_holes import NOISE_HOLES
from tests.support.release_kinds.nonlinear_maps import NONLINEAR_MAPS
from tests.support.release_kinds.one_column import ONE_COLUMN_KINDS
from tests.support.release_kinds.row_invariants import ROW_INVARIANTS
from tests.support.release_kinds.safe import SAFE_KINDS
from tests.support.release_kinds.seeded_noise import SEEDED_NOISE
from tests.support.release_kinds.shared_noise import SHARED_NOISE
from tests.support.release_kinds.uneven_noise import UNEVEN_NOISE

_EARLIER = (
    *CLASSIC,
    *FEW_PERSONS,
    *NOISE_HOLES,
    *ROW_INVARIANTS,
    *SIDE_CHANNELS,
    *SEEDED_NOISE,
    *COLUMN_MAPS,
    *NONLINEAR_MAPS,
    *ONE_COLUMN_KINDS,
)
EARLIER: dict[str, Kind] = {kind.name: kind for kind in _EARLIER}
# Invented after the detectors, without knowledge of their features; counted separately.
LATER: dict[str, Kind] = {kind.name: kind for kind in LATER_KINDS}
# Invented after all checks; counted separately.
_NEWEST = (*NEWEST_KINDS, *UNEVEN_NOISE, *MIXED_RECORDS, *SHARED_NOISE)
NEWEST: dict[str, Kind] = {kind.name: kind for kind in _NEWEST}
UNSAFE: dict[str, Kind] = {**EARLIER, **LATER, **NEWEST}
SAFE: dict[str, Kind] = {kind.name: kind for kind in (*SAFE_KINDS, *LATER_SAFE_KINDS)}
# Beyond every model of the proofs: whoever lacks the secret cannot distinguish these from noise.
NOT_TRIED: dict[str, str] = {
    "keyed hash of a record as a seed": "the noise can be recomputed with the key only",
    "encrypted values": "the values can be read with the key only",
    "encrypted values in low bits": "encrypted bits have the distribution of noise",
    "noise of an unlisted generator": "its stream can be recomputed with the generator only",
    "listed generator with a large seed": "there are more seeds than can be tried",
    "secret shares in two releases": "each release alone is independent of the records",
    "unknown dictionary of code words": "code words without pairs have no meaning",
}
