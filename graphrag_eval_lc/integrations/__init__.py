"""Other tools: scores at their traces, this scorer in their runners, their evaluators here, and MCP.

Each module needs the package of its tool, which an extra installs, and imports it only when it is used.
"""
