"""Settings for properties that need more examples than the profile's default."""

from hypothesis import HealthCheck, settings


def tried(times: int) -> settings:
    """Return settings with a multiple of the profile's examples."""
    count = times * settings.default.max_examples
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
