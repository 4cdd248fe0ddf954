"""Audit a release that any other tool made."""
