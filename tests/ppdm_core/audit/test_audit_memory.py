"""The memory of an audit does not grow with the table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.audit import SMALL_AUDITS, make_policy, make_table
from benchmarks.memory import measure_peak_memory
from ppdm_core.audit.audited_part import choose_part
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import collect_inputs, draw_shadows
from ppdm_core.audit.runner import run_audit
from ppdm_core.model.rows import BLOCK, Block, regroup_blocks
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import make_sanitizer
from tasks.audit.attack_inputs import store_draws
from warehouse.parquet_parts import write_parts

COLUMNS, PART = 8, 4_000
MAX_GROWTH_BYTES = 40 * 2**20  # of 262,144 x 8 more records, whose table alone takes 16 MB each


def audit_stored_table(blocks: int) -> None:
    """Draw and audit a table that is stored in Parquet parts."""
    source = make_table(BLOCK, COLUMNS)

    def repeat() -> Iterator[Block]:
        keys = np.random.default_rng(0)
        for number in range(blocks):
            for block in regroup_blocks([source.whole]):
                key = keys.integers(0, 256, (BLOCK, 16), dtype=np.uint8)
                record = number * BLOCK + np.arange(BLOCK)
                yield Block(block.X, block.C, block.label, key, record, number * BLOCK)

    with tempfile.TemporaryDirectory() as folder:
        rows = write_parts(repeat(), source.schema, Path(folder) / "table")
        method, policy = (
            make_sanitizer("pca_laplace", {"b": 0.3, "basis": "private"}),
            make_policy(),
        )
        fitted = {**method.fit(rows), "scaling": fit_scaling(rows, "none").as_dict()}
        noise = Noise(bytes(32))
        drawn = draw_shadows(
            rows, method, noise, fitted, policy, scope=("memory",), refit_halves=True
        )
        drawn = store_draws(drawn, Path(folder))
        part = choose_part(rows, noise, PART)
        inputs = collect_inputs(rows, drawn, row_aligned=True, part=part)
        auditor = Auditor(inputs.original, inputs.draws, policy, b"memory", inputs.halves)
        report = run_audit(auditor.run_one, SMALL_AUDITS)
        assert not report.failed, report.failed


@pytest.mark.slow
def test_audit_sixteen_more_blocks_hardly_more_memory():
    small, large = (measure_peak_memory(audit_stored_table, blocks) for blocks in (4, 20))
    assert large - small < MAX_GROWTH_BYTES
