"""Temporary home of the new modules."""
