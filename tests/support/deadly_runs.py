"""Shards of stored runs whose worker dies: in a module that spawned processes can import."""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from estimation.core.data.pool import Pool
from estimation.formats.shard_inputs import PoolStoredRuns


@dataclass(frozen=True)
class DeadlyRuns(PoolStoredRuns):
    """The last shard kills its worker, unless a file beside the runs says that this was done."""

    def pooled(self, topics: Sequence[str]) -> Pool:
        marker = self.files[0].with_name("killed")
        if self.shard == self.frame.shards - 1 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().pooled(topics)
