"""Shared types: schema, rows, release, attacker, score, policy, verdict, errors."""
