"""Two registries with other columns of the same persons; `python -m examples.two_registries`."""
