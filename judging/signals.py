"""What goes up from judging: a batch is complete, or a judgment was corrected.

Both are sent inside the transaction that writes it, so that a receiver can write what is due in
the same commit.

``batch_completed``: ``sender`` is Batch; ``batch`` is the row.
``judgment_corrected``: ``sender`` is Pair; ``pair`` is its row id. Sent whatever the state of the
batches that hold the pair: one that completes at the same moment is not visible to the sender.
"""

from django.dispatch import Signal

batch_completed = Signal()
judgment_corrected = Signal()
