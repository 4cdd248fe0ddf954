"""Run attacks on draws of a release, and score what they find."""
