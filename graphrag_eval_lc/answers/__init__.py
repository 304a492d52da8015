"""Answers: compares them with the rows that they came from, and with what the reference says that they must have."""
