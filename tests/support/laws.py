"""How often a law is tried that needs more examples than others do."""

from hypothesis import HealthCheck, settings


def tried(times: int) -> settings:
    """Return settings for so many times the examples of the profile: few daily, and fewer with other versions."""
    count = times * settings.default.max_examples
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
