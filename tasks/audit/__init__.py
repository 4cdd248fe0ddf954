"""Attack the shadow draws in a child process."""
