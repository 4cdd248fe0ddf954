"""Signed and encrypted messages between the sites of a common release and their centre."""
