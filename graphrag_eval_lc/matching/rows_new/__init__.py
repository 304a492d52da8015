"""Rows of any query language: results in many forms, compared as tuples."""
