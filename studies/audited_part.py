"""`python -m studies.audited_part`: what attacks find if an audit draws a part of the records.

The same release is audited twice: once with all records, once with a drawn part of them, as audits
of large tables do. Both use the same shadow draw, the same halves and the same attacker.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.audited_part import choose_part
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import collect_inputs, draw_shadows
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.model.score import Score
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import make_sanitizer

COLUMNS = 8
METHODS = {
    "additive_noise": {"b": 0.1},
    "pca_laplace": {"components": 5, "b": 0.1, "noise_shape": "per_component", "basis": "private"},
}
KEY = bytes(range(32))


def make_rows(n: int) -> ArrayRows:
    """Return records of three classes with correlated columns between 0 and 1."""
    rng = np.random.default_rng(4)
    map_, centres = rng.standard_normal((3, COLUMNS)), rng.standard_normal((3, COLUMNS))
    label = rng.integers(0, 3, n).astype(np.int32)
    Z = centres[label] + rng.standard_normal((n, 3)) @ map_
    X = 1.0 / (1.0 + np.exp(-(Z + 0.4 * rng.standard_normal((n, COLUMNS))) / 2))
    schema = Schema(
        tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(COLUMNS)),
        label=Categorical("kind", ("a", "b", "c")),
    )
    return ArrayRows(schema, X, label, rng.integers(0, 256, (n, 16), dtype=np.uint8))


def make_auditors(method: str, n: int, most: int) -> tuple[Auditor, Auditor]:
    """Return audits of one release: with all records, and with a drawn part."""
    sanitizer = make_sanitizer(method, METHODS[method])
    rows, policy = make_rows(n), Policy((), {}, Attacker(40, 0.02, 0.1), 1, 2, effort="quick")
    scaling = fit_scaling(rows, sanitizer.scale)
    X = scaling.apply(rows)
    fitted = {**sanitizer.fit(X), "scaling": scaling.as_dict()}
    noise = Noise(KEY)
    draws = draw_shadows(
        X, sanitizer, noise, fitted, policy, scope=("part",), refit_halves=sanitizer.learns
    )
    auditors = []
    for part in (None, choose_part(X, noise, most)):
        inputs = collect_inputs(X, draws, row_aligned=True, part=part)
        auditors.append(Auditor(inputs.original, inputs.draws, policy, KEY, inputs.halves))
    return auditors[0], auditors[1]


def main(argv: Sequence[str] | None = None) -> int:
    """Print one line for each score of each attack."""
    parser = argparse.ArgumentParser(prog="python -m studies.audited_part", description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--part", type=int, default=4_000)
    parser.add_argument("--attacks", nargs="*", default=[*ATTACKS])
    options = parser.parse_args(argv)
    for method in METHODS:
        auditors = make_auditors(method, options.records, options.part)
        for name in options.attacks:
            start = time.process_time()
            whole, part = (each.run_one(name).value or () for each in auditors)
            found = {score.name: score for score in part}
            for score in whole:
                if score.name in found:
                    print(format_line(method, score, found[score.name]), flush=True)
            print(f"  {name}: {time.process_time() - start:.0f} s", flush=True)
    return 0


def format_line(method: str, whole: Score, part: Score) -> str:
    """Return both scores of one metric with their intervals."""
    each = [
        f"{score.value:.3f} ({score.low:.3f} to {score.high:.3f}, n = {score.n:,})"
        for score in (whole, part)
    ]
    return f"{method:15} {whole.name:40} all {each[0]}  part {each[1]}"


if __name__ == "__main__":
    raise SystemExit(main())
