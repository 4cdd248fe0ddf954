"""`python -m benchmarks [NAME...]`: print a table, write JSON; exit 1 if a target is missed."""

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
from benchmarks.harness import Comparison, Result, log, measure

BENCHMARKS: dict[str, tuple[Callable[[bool], AbstractContextManager[list[Comparison]]], int]] = {
    "grid_noise": (grid_noise.build_comparisons, 5),  # builder and number of rounds
    "pca_laplace": (pca_laplace.build_comparisons, 9),
    "additive_noise": (additive_noise.build_comparisons, 5),
    "dct_fuzzy": (dct_fuzzy.build_comparisons, 11),
    "kde_resample": (kde_resample.build_comparisons, 3),
    "nonmetric_mds": (nonmetric_mds.build_comparisons, 3),
    "known_sample_pca": (known_sample_pca.build_comparisons, 3),
    "record_linkage": (record_linkage.build_comparisons, 3),
    "neighbourhoods": (neighbourhoods.build_comparisons, 3),
    "radius_knn": (radius_knn.build_comparisons, 9),
    "audit": (audit.build_comparisons, 1),
    "release": (release.build_comparisons, 11),
    "command": (command.build_comparisons, 21),
}
RESULTS_PATH = Path(__file__).parent / "results.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the named benchmarks, or all, and return the exit code."""
    options = parse_arguments(argv)
    facts = report.describe_machine()
    log(report.format_machine(facts))
    results: list[Result] = []
    for name in options.names or BENCHMARKS:
        benchmark, rounds = BENCHMARKS[name]
        with benchmark(options.small) as comparisons:
            selected = map(remove_targets, comparisons) if options.small else comparisons
            results += [measure(each, options.rounds or rounds) for each in selected]
    print(report.format_table(results))
    content = {"machine": facts, "results": [result.as_dict() for result in results]}
    options.out.write_text(json.dumps(content, indent=2) + "\n")
    log(f"written to {options.out}")
    return int(any(result.met is False for result in results))


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--out", type=Path, default=RESULTS_PATH, help="JSON file to write")
    parser.add_argument("--rounds", type=int, help="instead of each benchmark's own number")
    parser.add_argument("--small", action="store_true", help="toy sizes, without targets")
    options = parser.parse_args(argv)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark '{unknown[0]}'; known: {', '.join(BENCHMARKS)}")
    return options


def remove_targets(comparison: Comparison) -> Comparison:
    """Return a comparison without targets; small sizes show nothing about them."""
    figures = tuple(replace(figure, at_most=None) for figure in comparison.figures)
    return replace(comparison, at_least=None, at_most=None, figures=figures)


if __name__ == "__main__":
    sys.exit(main())
