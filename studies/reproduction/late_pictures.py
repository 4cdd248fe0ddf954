"""Our pictures beside the figures of P3 and P4."""

from __future__ import annotations

from studies.reproduction.picture import Pair, Picture


def pair_rivals(case: str, figure: str) -> dict[str, list[Pair]]:
    """Return privacy and quality of mining of all methods of P3, by label."""
    own, level = f"{case} case", "average" if case == "average" else "worst-case"
    names = {
        "original": ["original"],
        "chosen coefficients": [f"ours, {own}"],
        "random coefficients": [f"random coefficients, {own}"],
        "normal noise": [f"normal noise, {each}" for each in ("fifth", "half", level)],
        "uniform noise": [f"uniform noise, {each}" for each in ("fifth", "half", level)],
        "projection": ["projection, as many columns", "projection, all but one"],
    }
    return {
        label: [(f"privacy of {each}", f"{figure} of {each}") for each in each_of]
        for label, each_of in names.items()
    }


LATE_PICTURES = (
    *(
        Picture(
            f"p3_{axis}_{key}",
            f"P3 figure {figure}",
            title,
            "cosine_sweep",
            {label: f"{quantity}, {fixed}" for label, quantity in series.items()},
            axis,
            f"{axis}, with {fixed.replace(' ', ' = ')}",
        )
        for axis, fixed, figure in (("b", "p 0.2", 4), ("p", "b 0.1", 5))
        for key, title, series in (
            (
                "loss",
                "Loss of distance, and change of accuracy",
                {"distance loss": "distance loss", "accuracy change": "accuracy change"},
            ),
            (
                "privacy",
                "Privacy",
                {"average case": "average privacy", "worst case": "worst-case privacy"},
            ),
        )
    ),
    *(
        Picture(
            f"p3_{axis}_kept",
            f"P3 figure {figure}",
            "Kept coefficients",
            "kept_coefficients",
            {"kept": f"kept, {fixed}"},
            axis,
            f"{axis}, with {fixed.replace(' ', ' = ')}",
        )
        for axis, fixed, figure in (("b", "p 0.2", "4b"), ("p", "b 0.1", "5b"))
    ),
    *(
        Picture(
            f"p3_{case}_{key}",
            f"P3 figure {figure}",
            f"{title} over {case}-case privacy",
            "cosine_rivals",
            points=pair_rivals(case, quantity),
            label=f"{case}-case privacy",
            up=title,
        )
        for case, figure in (("average", 6), ("worst", 9))
        for key, title, quantity in (
            ("accuracy", "Accuracy", "accuracy"),
            ("clusters", "F measure of K-means", "F measure"),
        )
    ),
    Picture(
        "p3_partitions",
        "P3 figures 7a and 8a",
        "Accuracy minus that of the central choice",
        "partitions",
        {
            "horizontal": "horizontal, accuracy minus central",
            "vertical": "vertical, accuracy minus central",
        },
        "sites",
        "sites",
    ),
    Picture(
        "p3_partitions_privacy",
        "P3 figures 7b and 8b",
        "Average-case privacy",
        "partitions",
        {"horizontal": "horizontal, privacy", "vertical": "vertical, privacy"},
        "sites",
        "sites",
    ),
    Picture(
        "p4_shepard",
        "P4 figure 1",
        "Share of the variance of distances that the original ones do not explain",
        "layout_quality",
        values={
            name: f"unexplained share of distances, {name}" for name in ("scaling", "projection")
        },
    ),
    Picture(
        "p4_accuracy",
        "P4 figure 5",
        "Accuracy of k neighbours on original and release",
        "embedded_neighbours",
        {"original": "accuracy original", "release": "accuracy release"},
        "k",
        "neighbours k",
    ),
    Picture(
        "p4_distances",
        "P4 figure 4",
        "Mean change of a distance, over the mean distance",
        "layout_quality",
        values={
            name: f"change of distances, {name}" for name in ("scaling", "rotation", "projection")
        },
    ),
    Picture(
        "p4_neighbours",
        "P4 figure 6",
        "Share of the k nearest neighbours that stay",
        "layout_quality",
        {name: f"neighbours kept, {name}" for name in ("scaling", "rotation", "projection")},
        "k",
        "neighbours k",
    ),
    Picture(
        "p4_compactness",
        "P4 figure 7",
        "Share of the k nearest rows with the same class",
        "layout_quality",
        {
            name: f"compactness, {name}"
            for name in ("original", "scaling", "rotation", "projection")
        },
        "k",
        "neighbours k",
    ),
    Picture(
        "p4_dimensions",
        "P4 figure 8",
        "Accuracy of four neighbours over dimensions",
        "dimension_sweep",
        {"scaling": "accuracy scaling", "projection": "accuracy projection"},
        "dimensions",
        "dimensions",
    ),
    Picture(
        "p4_classes",
        "P4 figure 9",
        "The classes of Wine on the first two principal components",
        "layout_quality",
        clouds={
            title: {
                f"class {code}": (
                    f"shown, {title}, class {code}, axis 1",
                    f"shown, {title}, class {code}, axis 2",
                )
                for code in (1, 2, 3)
            }
            for title in ("original", "scaling", "rotation", "projection")
        },
        label="first component",
        up="second component",
        tables=("wine",),
    ),
)
