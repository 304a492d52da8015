"""The plugin for pytest: a test for each question of a dataset, and a run's folder, report and gates at the end.

pytest loads it by an entry point wherever this package is installed, so it imports nothing heavy until it is used.
"""
