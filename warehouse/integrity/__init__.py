"""Keys, seals, events and the check of the history."""
