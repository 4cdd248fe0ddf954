"""Draw the candidate and its shadow draws."""
