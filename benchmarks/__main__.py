"""`python -m benchmarks [NAME...]`: one table, one JSON file; exit code 1 if a target is missed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from benchmarks import (
    additive_noise,
    audit,
    command,
    dct_fuzzy,
    grid_noise,
    kde_resample,
    known_sample_pca,
    neighbourhoods,
    nonmetric_mds,
    pca_laplace,
    radius_knn,
    record_linkage,
    release,
    report,
)
from benchmarks.harness import Comparison, Result, measure, say

BENCHMARKS: dict[str, tuple[Callable[[bool], AbstractContextManager[list[Comparison]]], int]] = {
    "grid_noise": (grid_noise.compared, 5),  # and how many rounds
    "pca_laplace": (pca_laplace.compared, 9),
    "additive_noise": (additive_noise.compared, 5),
    "dct_fuzzy": (dct_fuzzy.compared, 11),
    "kde_resample": (kde_resample.compared, 3),
    "nonmetric_mds": (nonmetric_mds.compared, 3),
    "known_sample_pca": (known_sample_pca.compared, 3),
    "record_linkage": (record_linkage.compared, 3),
    "neighbourhoods": (neighbourhoods.compared, 3),
    "radius_knn": (radius_knn.compared, 9),
    "audit": (audit.compared, 1),
    "release": (release.compared, 11),
    "command": (command.compared, 21),
}
OUT = Path(__file__).parent / "results.json"


def main(argv: Sequence[str] | None = None) -> int:
    options = parsed(argv)
    facts = report.machine()
    say(report.in_a_line(facts))
    results: list[Result] = []
    for name in options.names or BENCHMARKS:
        benchmark, rounds = BENCHMARKS[name]
        with benchmark(options.small) as comparisons:
            judged = map(without_target, comparisons) if options.small else comparisons
            results += [measure(each, options.rounds or rounds) for each in judged]
    print(report.table(results))
    content = {"machine": facts, "results": [result.as_dict() for result in results]}
    options.out.write_text(json.dumps(content, indent=2) + "\n")
    say(f"written to {options.out}")
    return int(any(result.met is False for result in results))


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--out", type=Path, default=OUT, help="JSON file to write")
    parser.add_argument("--rounds", type=int, help="instead of each benchmark's own number")
    parser.add_argument("--small", action="store_true", help="toy sizes, without targets")
    options = parser.parse_args(argv)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark '{unknown[0]}'; known: {', '.join(BENCHMARKS)}")
    return options


def without_target(comparison: Comparison) -> Comparison:
    figures = tuple(replace(figure, at_most=None) for figure in comparison.figures)
    return replace(comparison, at_least=None, at_most=None, figures=figures)


if __name__ == "__main__":
    sys.exit(main())
