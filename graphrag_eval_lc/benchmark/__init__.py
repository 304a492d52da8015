"""The benchmark: questions to responses at speed, scored and written to a run's folder."""
