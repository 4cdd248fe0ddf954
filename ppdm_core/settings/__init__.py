"""Settings that a steward writes: sections, limits, the policy file, and the errors of them."""
