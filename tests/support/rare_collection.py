"""Collect garbage rarely: the libraries hold a million objects, and each collection visits them."""

from __future__ import annotations

import gc

gc.set_threshold(100_000, 20, 100)
