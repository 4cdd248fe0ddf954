"""All pictures, in the order of the papers."""

from __future__ import annotations

from studies.reproduction.early_pictures import EARLY_PICTURES
from studies.reproduction.late_pictures import LATE_PICTURES

PICTURES = (*EARLY_PICTURES, *LATE_PICTURES)
