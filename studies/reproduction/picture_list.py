"""Our pictures beside the figures of the papers: what each of them shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Picture:
    """Series over an axis, or single values by label, in one panel for each table."""

    name: str
    place: str  # the figure of the paper
    title: str
    experiment: str
    series: Mapping[str, str] = field(default_factory=dict)  # label -> quantity before "/axis="
    axis: str = ""  # name before "=" in quantities
    label: str = ""  # of the axis
    is_log: bool = False
    values: Mapping[str, str] = field(default_factory=dict)  # label -> quantity, without an axis

    @property
    def paper(self) -> str:
        return self.place.split(" ")[0]


PICTURES = (
    Picture(
        "p0_amplification",
        "P0 figure 6a",
        "Amplification measured from the noise of releases",
        "measured_noise",
        {"measured": "measured gamma"},
        "b",
        "noise b",
        is_log=True,
    ),
    Picture(
        "p0_posterior",
        "P0 figure 6b",
        "Largest posterior of a property of 0.1 %",
        "laplace_bounds",
        {"bound": "posterior of 0.001"},
        "b",
        "noise b",
        is_log=True,
    ),
    Picture(
        "p0_accuracy",
        "P0 figure 9",
        "Accuracy of three classifiers on components with noise",
        "laplace_mining",
        {"radius": "accuracy radius", "best k": "accuracy best k", "k = 5": "accuracy k 5"},
        "b",
        "noise b",
    ),
    Picture(
        "p0_privacy",
        "P0 figure 8",
        "Average privacy before and after filtering",
        "laplace_privacy",
        {
            "no filtering": "privacy unfiltered",
            "filtered": "privacy filtered",
            "no components, filtered": "privacy without components, filtered",
        },
        "b",
        "noise b",
    ),
    Picture(
        "p0_points",
        "P0 figure 5",
        "Accuracy over three settings, from little to much noise",
        "method_points",
        {
            "radius": "accuracy of radius",
            "projection": "accuracy of projection",
            "uniform": "accuracy of uniform",
            "normal": "accuracy of normal",
        },
        "setting",
        "setting",
    ),
    Picture(
        "p0_point_privacy",
        "P0 figure 5",
        "Average privacy over the same settings",
        "method_points",
        {
            "radius": "privacy of radius",
            "projection": "privacy of projection",
            "uniform": "privacy of uniform",
            "normal": "privacy of normal",
        },
        "setting",
        "setting",
    ),
    Picture(
        "p0_time_records",
        "P0 figures 10b and 11b",
        "Processor seconds over records, 100 attributes",
        "laplace_times",
        {"sanitize": "seconds of sanitizing", "one query": "seconds of mining"},
        "records",
        "records",
        is_log=True,
    ),
    Picture(
        "p0_time_attributes",
        "P0 figures 10a and 11a",
        "Processor seconds over attributes, 100,000 records",
        "laplace_times",
        {"sanitize": "seconds of sanitizing", "one query": "seconds of mining"},
        "attributes",
        "attributes",
        is_log=True,
    ),
    Picture(
        "p1_breach",
        "P1 equation 2",
        "Largest difference of simulated from computed breach probability",
        "breach_formula",
        {"paper's formula": "simulated minus paper", "exact formula": "simulated minus exact"},
        "D",
        "free dimensions",
    ),
    Picture(
        "p1_sample",
        "P1 figures 2 and 4",
        "Relative error of the attack over the size of the sample",
        "known_sample",
        {"relative error": "relative error"},
        "share",
        "sample, as a share of the records",
    ),
    Picture(
        "p1_time",
        "P1 run time",
        "Processor seconds to try all signs",
        "sign_search_times",
        {"all signs": "seconds"},
        "dimensions",
        "dimensions",
        is_log=True,
    ),
    Picture(
        "p2_phi",
        "P2 figures 3a to 7a",
        "Loss of accuracy over the number of sites",
        "pooled_classifiers",
        {"ANN": "phi ann", "kNN": "phi knn", "naive Bayes": "phi nb"},
        "L",
        "sites",
    ),
    Picture(
        "p2_dapl",
        "P2 figures 3b to 7b",
        "Error of the density over the number of sites, two readings",
        "density_loss",
        {"plug-in": "plug-in DAPL", "held-out": "held-out DAPL"},
        "L",
        "sites",
    ),
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
    Picture(
        "p3_rivals",
        "P3 figure 6",
        "Accuracy minus that of other methods, at the same average-case privacy",
        "cosine_rivals",
        values={
            "normal noise": "gain at average privacy over normal",
            "uniform noise": "gain at average privacy over uniform",
            "projection, as many": "gain over projection, as many columns",
            "projection, all but one": "gain over projection, all but one",
            "random coefficients": "gain over random coefficients",
        },
    ),
    Picture(
        "p3_worst",
        "P3 figure 9",
        "The same, at the same worst-case privacy, and privacy minus that of a projection",
        "cosine_rivals",
        values={
            "normal noise": "gain at worst-case privacy over normal",
            "uniform noise": "gain at worst-case privacy over uniform",
            "privacy": "worst-case privacy minus projection",
        },
    ),
    Picture(
        "p3_partitions",
        "P3 figures 7 and 8",
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
)
