"""The steps of a release: one small function each. They pass references, never rows."""
