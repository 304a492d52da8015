"""Shared parts of the tests: stub servers and models, runs that are made once, and pages to read."""
