"""Connections to other tools: scores on their traces, our scorer in their runners, their evaluators here, and MCP.

Each module needs the package of its tool, which an extra installs, and imports it only when it is used.
"""
