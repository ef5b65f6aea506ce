"""Processor time of a PostgreSQL server that a benchmark started."""

import psutil

from tests.support.postgres import Postgres


def seconds_of(cluster: Postgres | None) -> float:
    """Of all processes of the cluster that are there; 0 without one."""
    if cluster is None or cluster.process is None:
        return 0.0
    server = psutil.Process(cluster.process.pid)
    return sum(map(_seconds, [server, *server.children(recursive=True)]))


def _seconds(process: psutil.Process) -> float:
    """Of a process, which may have ended since it was listed: the server vacuums by itself."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)
