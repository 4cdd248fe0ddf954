"""The search for settings that keep the policy, on draws of a bounded sample."""
