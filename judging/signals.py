"""What goes up from judging: a batch is complete, or labels changed that were complete before.

All are sent inside the transaction that writes it, so that a receiver can write what is due in
the same commit.

``batch_completed``: ``sender`` is Batch; ``batches`` are the rows of all that one act completed.
``judgment_corrected``: ``sender`` is Pair; ``pair`` is its row id. Sent whatever the state of the
batches that hold the pair: one that completes at the same moment is not visible to the sender.
``labels_added``: ``sender`` is Pair; ``pairs`` are row ids of pairs that got a judgment more than
one of their batches asks for, because another batch asks for more. Sent whatever the state of the
batches, as above; not where the judgment completed a batch, which says more.
``labels_counted_anew``: ``sender`` is Campaign, ``campaign`` the row. Work of somebody was
excluded, or counts again: labels of any pair may be others, and complete batches open again.
``seniors_changed``: the same. A senior grade was given or taken back, or counts otherwise.
``said_aside``: the same. Somebody whose work is excluded said something that would count otherwise.

Five ask. ``work_to_come``, ``sender`` is Campaign, ``campaign`` the row. A receiver answers
``chosen`` if pairs are being chosen, for which nobody has to wait for other people; ``halted`` if
that has failed for good, so that an organizer must do something; else nothing.

``weights_asked``, the same sender and ``campaign``, with ``pairs``, row ids: a receiver answers
with how many pairs each of them stands for, as far as it knows.

``left_out_asked``, the same: a receiver answers with row ids of uploads whose content takes part in
nothing any more, as a run that was withdrawn or replaced.

``opening_asked``, the same, before the next batch is opened for somebody who finds nothing in open
ones: a receiver answers with row ids of waiting batches that are not to be opened yet. By how far
the batches before them are, and never by what was said.

``competence_asked``, the same, with ``username``: a receiver answers with what is known of how good
the labels of that person are, as it was found with the latest estimates, or with nothing.
"""

from django.dispatch import Signal

batch_completed = Signal()
judgment_corrected = Signal()
labels_added = Signal()
labels_counted_anew = Signal()
seniors_changed = Signal()
said_aside = Signal()
work_to_come = Signal()
weights_asked = Signal()
opening_asked = Signal()
competence_asked = Signal()
left_out_asked = Signal()
