"""Stub of the package."""
