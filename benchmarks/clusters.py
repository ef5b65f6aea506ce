"""Processor time of a PostgreSQL server that a benchmark started."""

import psutil

from tests.support.postgres import Postgres


def seconds_of(cluster: Postgres | None) -> float:
    """Of all processes of the cluster that are there; 0 without one."""
    if cluster is None or cluster.process is None:
        return 0.0
    server = psutil.Process(cluster.process.pid)
    times = [each.cpu_times() for each in [server, *server.children(recursive=True)]]
    return float(sum(each.user + each.system for each in times))
