"""Our pictures beside the figures of P0, P1 and P2."""

from __future__ import annotations

from studies.reproduction.picture import Pair, Picture


def pair_settings(method: str) -> list[Pair]:
    """Return average privacy and accuracy of three settings of a method."""
    return [
        (f"privacy of {method}/setting={each}", f"accuracy of {method}/setting={each}")
        for each in (1, 2, 3)
    ]


EARLY_PICTURES = (
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
        "Accuracy over average privacy, three settings from little to much noise",
        "method_points",
        points={
            name: pair_settings(name) for name in ("radius", "projection", "uniform", "normal")
        },
        label="average privacy",
        up="accuracy",
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
        "p1_records",
        "P1 figure 1",
        "The first 100 records with what is released and recovered, with a sample of 5 %",
        "known_sample",
        clouds={
            title: {
                label: (f"shown, {name}, column 1", f"shown, {name}, column 2")
                for label, name in (("original", "original"), ("see title", title))
            }
            for title in ("released", "recovered")
        },
        label="first column",
        up="second column",
        tables=("normal_2d",),
    ),
    Picture(
        "p1_adult",
        "P1 figure 3",
        "The first 100 records of Adult, with a sample of 5 %",
        "known_sample",
        clouds={
            title: {
                name: (f"shown, original, column {column}", f"shown, {name}, column {column}")
                for name in ("released", "recovered")
            }
            for column, title in enumerate(("age", "education", "hours"), start=1)
        },
        label="original",
        up="released or recovered",
        tables=("adult",),
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
        "Error of the density over the number of sites, two readings, and by class",
        "density_loss",
        {
            "plug-in": "plug-in DAPL",
            "held-out": "held-out DAPL",
            "plug-in, class 1": "plug-in DAPL of class 1",
            "plug-in, class 2": "plug-in DAPL of class 2",
        },
        "L",
        "sites",
    ),
    Picture(
        "p2_sources",
        "P2 figures 3b to 7b",
        "Beside them: rows whose record is found, and posterior of the record",
        "source_records",
        {"found": "identified over sites", "posterior": "posterior over sites"},
        "L",
        "sites",
    ),
    Picture(
        "p2_growing",
        "P2 section 5.2.1",
        "Rows whose record is found, and bits that a row tells, as a normal table grows",
        "growing_tables",
        {
            f"{label}, {columns}": f"{name}, {columns}"
            for columns in ("1 column", "2 columns")
            for label, name in (("found", "source identified"), ("bits", "mutual information"))
        },
        "records",
        "records",
    ),
)
