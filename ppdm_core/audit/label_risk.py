"""What the label alone gives: the chance to pick a person's row among the rows with its label."""

from __future__ import annotations

import numpy as np

from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.metrics import SentenceValues
from ppdm_core.metrics.rate import Rate
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import LABEL
from ppdm_core.model.reasons import Reason
from ppdm_core.model.score import Score

LabelCounts = tuple[Codes, Ints]  # labels, ascending, and the number of rows with each
METRIC = Rate()
LABEL_RATE = f"{LABEL}.{METRIC.name}"  # the name of the score
MIN_CLASS_RECORDS = 50  # a label with a smaller class counts as a released column
STORY = "An attacker knows only the label of real persons, and picks one of the rows with it."
SMALL_CLASSES = (
    f"A class has fewer than {MIN_CLASS_RECORDS} records, so that all other scores include what "
    "the label gives. "
)


def score_label(truth: OriginalTable, draw: ReleaseDraw) -> Score:
    """Return the score of the label; it is exact, because all rows are counted."""
    if truth.schema.label is None:
        raise NotApplicable(Reason.NO_LABEL.sentence, reason=Reason.NO_LABEL)
    if (draw.records < 0).any():  # not known whose row is whose
        counts = count_labels(draw, draw.find_labels(truth), with_partners=False)
        chances = compute_chances(truth.label, counts)
    else:
        records, own = select_first_rows(truth, draw)
        counts = count_labels(draw, own)
        if draw.others is None:
            chances = compute_chances(truth.label[records], counts, own)
        else:  # all rows of a class have the same chance
            chances = np.repeat(1.0 / counts[1], counts[1])
    value, baseline = float(np.mean(chances)), 1.0 / int(counts[1].sum())
    story = (SMALL_CLASSES if has_small_class(truth, draw) else "") + STORY
    return Score(
        name=LABEL_RATE,
        kind=METRIC.kind,
        better=METRIC.better,
        value=value,
        low=value,
        high=value,
        n=len(chances),
        baseline=baseline,
        worst=value,
        worst_decile=float(np.mean(np.sort(chances)[-max(1, len(chances) // 10) :])),
        story=story,
        sentence=METRIC.sentence(SentenceValues(value, baseline, story)),
    )


def has_small_class(truth: OriginalTable, draw: ReleaseDraw) -> bool:
    """Return whether the release has a class of fewer than MIN_CLASS_RECORDS rows."""
    if truth.schema.label is None:
        return False
    _, counts = count_labels(draw, draw.find_labels(truth))
    return bool(counts.min() < MIN_CLASS_RECORDS)


def count_labels(draw: ReleaseDraw, labels: Codes, *, with_partners: bool = True) -> LabelCounts:
    """Return how many rows of a release have each label.

    ``labels`` are those of the rows in memory; all other rows of the release are added.
    """
    labels = draw.add_partner_labels(labels) if with_partners else labels
    codes, counts = np.unique(labels, return_counts=True)
    if draw.others is None:
        return codes, counts
    more, further = draw.others.label_counts
    found, place = np.unique(np.append(codes, more), return_inverse=True)
    total = np.bincount(place, np.append(counts, further)).astype(np.int64)
    return found, total


def select_first_rows(truth: OriginalTable, draw: ReleaseDraw) -> tuple[Ints, Codes]:
    """Return the records that have a row, ascending, and the released label of each."""
    records, first = np.unique(draw.records, return_index=True)
    return records, draw.find_labels(truth)[first]


def compute_label_chances(known: Codes, rows: Codes, own: Codes | None = None) -> Floats:
    """Return for each person the chance that a random row with the person's label is its own.

    ``known``: the labels of the persons; ``rows``: those of all rows; ``own``: those of the
    persons' rows. None: each person is assumed to have one of the rows with its label.
    """
    return compute_chances(known, np.unique(rows, return_counts=True), own)


def compute_chances(known: Codes, rows: LabelCounts, own: Codes | None = None) -> Floats:
    """Return the same as ``compute_label_chances``, from the number of rows with each label."""
    codes, counts = rows
    place = np.minimum(np.searchsorted(codes, known), len(codes) - 1)
    is_among = codes[place] == known if own is None else own == known
    return np.where(is_among, 1.0 / counts[place], 0.0)
