"""Recognition of records that an earlier table of the home held, by keyed digests alone."""
