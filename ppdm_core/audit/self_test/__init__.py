"""The audit proves itself: its attacks on releases with known answers, its policy on the table."""
