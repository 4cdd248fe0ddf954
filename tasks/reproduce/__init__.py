"""Measure and judge the claims of papers."""
