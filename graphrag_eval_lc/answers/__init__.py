"""Answers held against the rows that they came from, and against what a reference says that they must have."""
