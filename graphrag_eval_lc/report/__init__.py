"""Showing people what a run gave."""
