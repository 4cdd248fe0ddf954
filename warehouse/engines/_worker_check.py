"""Whether a worker computes what this process computes.

A worker with other code, or whose linear algebra rounds differently, would give a release that
depends on where its rows were computed. Every worker computes a known block before its first part.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import BLOCK, Block, encode_positions
from ppdm_core.numerics.noise import Noise
from warehouse.code_version import compute_code_version

Description = tuple[tuple[str, str], ...]
COLUMNS = 20  # of the known block
CODE, PYTHON, NUMPY = "code version", "version of Python", "numpy"
KERNEL, DIGITS = "BLAS kernel", "known block"
REMEDIES = {
    CODE: "Install the same version of ppdm there, and start the worker again.",
    PYTHON: "Install ppdm there with the same version of Python.",
    NUMPY: "Install the same version of numpy there, and start the worker again.",
    KERNEL: "Start all workers and this command with the same OPENBLAS_CORETYPE.",
    DIGITS: "Use machines with the same kind of processor.",
}


@lru_cache(maxsize=1)
def describe_process(_: None = None) -> Description:
    """Return what decides whether this process computes the same bytes as another one."""
    return (
        (CODE, compute_code_version()),
        (PYTHON, f"{sys.version_info.major}.{sys.version_info.minor}"),
        (NUMPY, np.__version__),
        (KERNEL, find_kernel()),
        (DIGITS, digest_known_block()),
    )


def find_kernel() -> str:
    """Return the name of the kernels that linear algebra uses."""
    from threadpoolctl import threadpool_info

    found = {info.get("architecture") or info["internal_api"] for info in threadpool_info()}
    return ", ".join(sorted(map(str, found - {"openmp"})))


def digest_known_block() -> str:
    """Return a digest of products, functions and noise of one canonical block."""
    rng = np.random.Generator(np.random.PCG64(20260801))
    X = rng.random((BLOCK, COLUMNS))
    A = rng.normal(size=(COLUMNS, COLUMNS))
    positions = np.arange(BLOCK)
    block = Block(
        X=X,
        C=np.zeros((BLOCK, 0), dtype=np.int32),
        label=np.zeros(BLOCK, dtype=np.int32),
        key=encode_positions(positions),
        record=positions,
        start=0,
    )
    bits = Noise(b"known block, which is no secret.").bits(block, "known block", 2, b"")
    tables = (X @ A, X.T @ X, np.exp(X), np.log(X + 1), np.tan(X), np.cos(X), X**0.3, bits)
    return hashlib.sha256(b"".join(np.ascontiguousarray(t).tobytes() for t in tables)).hexdigest()


def check_worker(worker: str, found: Any, expected: Description) -> None:
    """Raise BadInput if a worker computes something else, or other digits."""
    there: Mapping[str, str] = dict(found) if isinstance(found, tuple) else {}
    for name, here in expected:
        if there.get(name) != here:
            shown = "" if name == DIGITS else f": {there.get(name, 'unknown')}, here {here}"
            what = (
                "computes other digits of a known block"
                if name == DIGITS
                else f"has another {name}"
            )
            raise BadInput(f"{worker} {what}{shown}.", remedy=REMEDIES[name])
