"""The event loop of all synchronous calls, its threads and connections, and what blocks it."""
