"""A folder of runs: what is in it, and how scores, costs and tokens changed from run to run."""

from graphrag_eval_lc.run_store.stored_runs import StoredRun, latest_run, list_runs

__all__ = ["StoredRun", "latest_run", "list_runs"]
