"""Draw the candidate, and prepare the records that releases are drawn from."""
