"""A folder of runs: what is in it, and how scores, costs and tokens changed from run to run."""

from graphrag_eval_lc.run_store.stored_runs import StoredRun, list_runs

__all__ = ["StoredRun", "list_runs"]
