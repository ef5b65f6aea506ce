"""The one thing that goes up from judging: a batch is complete, or a complete batch has changed.

Sent inside the transaction that completes (or corrects) the batch, so that a receiver can write
what is due in the same commit. ``sender`` is Batch; ``batch`` is the row.
"""

from django.dispatch import Signal

batch_completed = Signal()
