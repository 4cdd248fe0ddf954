"""The only code that writes below `published/`."""
