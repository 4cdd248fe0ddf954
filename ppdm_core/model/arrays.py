"""Names of the array types that the core uses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Bools = NDArray[np.bool_]
Keys = NDArray[np.uint8]
Names = NDArray[np.uint64]  # of records or draws in the ledger
