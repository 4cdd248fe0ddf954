"""Publish an approved candidate with its card and manifest."""
