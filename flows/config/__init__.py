"""The release file: its sections, columns and errors."""
