"""Three hospitals and a centre that release together; `python -m examples.hospitals` runs it."""
