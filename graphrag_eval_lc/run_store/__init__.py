"""A folder of runs: lists the runs, and shows how scores, costs and tokens changed from run to run."""

from graphrag_eval_lc.public_names import only_public
from graphrag_eval_lc.run_store.baselines import Baseline, baseline_in
from graphrag_eval_lc.run_store.stored_runs import StoredRun, latest_run, list_runs
from graphrag_eval_lc.run_store.trend import RunTrend, trend

__all__ = ["Baseline", "RunTrend", "StoredRun", "baseline_in", "latest_run", "list_runs", "trend"]

__dir__ = only_public(globals())
