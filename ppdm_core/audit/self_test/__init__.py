"""The self-test of an audit: attacks on planted leaks, the policy on broken releases."""
