"""Real Ray clusters on this machine, one at a time. Test modules import the fixtures."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

fcntl = pytest.importorskip("fcntl")
ray = pytest.importorskip("ray")


@pytest.fixture(autouse=True, scope="module")
def one_cluster_at_a_time(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    place = tmp_path_factory.getbasetemp().parent / "ray.lock"
    with place.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAY_AUTH_MODE", "disabled")
            patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
            yield


def started_cluster(**head: Any) -> Iterator[str]:
    """Start a cluster of two nodes and three processors, yield its address, and stop it."""
    made = import_module("ray.cluster_utils").Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **head})
    made.add_node(num_cpus=2)
    made.wait_for_nodes()
    try:
        yield made.address
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture(scope="class")
def connected(cluster: str) -> Iterator[None]:
    """Connect this process to the cluster. Its runs then share their workers, which take seconds to start."""
    ray.init(address=cluster, logging_level="error")
    yield
    ray.shutdown()
