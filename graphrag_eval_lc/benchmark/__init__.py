"""The benchmark: runs questions through an agent, scores the responses and writes them to a run's folder."""
