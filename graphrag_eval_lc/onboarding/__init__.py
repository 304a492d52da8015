"""Starts a project from an agent or from graphrag-eval's files, and checks it as ``doctor``."""
