"""The user interface: the command line and the local services."""
