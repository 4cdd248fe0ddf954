"""Policies of audits of two files."""

from __future__ import annotations

# One attack, at its quickest.
QUICK = """
[attacker]
known_records = 8
[audit]
required = ["record_linkage"]
effort = "quick"
[limits]
"record_linkage.rate" = { value = 0.2, set_by = "DPO", reason = "a test" }
"""
