"""Read the source, validate it, and store its records."""
