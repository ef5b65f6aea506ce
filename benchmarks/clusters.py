"""Processor time of a PostgreSQL server that a benchmark started."""

import psutil

from tests.support.postgres import Postgres


def seconds_of(cluster: Postgres | None) -> float:
    """Of all processes of the cluster, also of those that have ended; 0 without one.

    A connection that is closed ends its process a little later: what that has taken must not be
    missing from what is measured from then on.
    """
    if cluster is None or cluster.process is None:
        return 0.0
    server = psutil.Process(cluster.process.pid)
    times = server.cpu_times()
    own = times.user + times.system + times.children_user + times.children_system
    return float(own + sum(map(_seconds, server.children(recursive=True))))


def _seconds(process: psutil.Process) -> float:
    """Of a process, which may have ended since it was listed: the server vacuums by itself."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)
