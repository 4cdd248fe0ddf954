"""The search for settings that keep a policy: what is tried, measured, kept and compared."""
