"""Showing a run to people: its report, its summary on the terminal, and comparisons as pages."""
