"""A real Kubernetes for the tests of this folder: its programs are found or built once, and one control plane serves them all."""

import time
from collections.abc import Iterator

import pytest

from sandbox.cluster import tools
from sandbox.cluster.clusters import Clusters
from sandbox.cluster.tools import Tools
from tests.cluster.planes import Plane


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cluster: runs a real Kubernetes (make test-cluster)")


@pytest.fixture(scope="session")
def programs() -> Tools:
    return tools.find(print)


@pytest.fixture(scope="session")
def plane(programs: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A cluster without nodes; who needs some makes them join."""
    clusters = Clusters(tmp_path_factory.mktemp("home"), lambda: programs)
    clusters.makes = True
    began = time.monotonic()
    clusters.start("plane", "1.35")
    yield Plane(clusters, "plane", time.monotonic() - began)
    for name in clusters.names():
        clusters.stop(name)
    clusters.close()
