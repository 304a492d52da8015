"""The event loop of all synchronous calls, its threads and HTTP connections, and warnings about blocking code."""
