"""Examples of common releases, each by one command: python -m examples.hospitals FOLDER"""
