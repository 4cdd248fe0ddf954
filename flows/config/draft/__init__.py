"""Drafts of release files for tables that have none yet."""
