"""Traces of other tools, OpenTelemetry's and LangSmith's, read as responses."""
