"""Which compression estimates were possible when each captured batch was created, and what that shows.

A producer creates a batch with its current estimate of the topic's compression. The estimate decides how many records
the batch takes. Each close of a batch moves the estimate, and each split raises it. If we knew all closes before a
batch was created, we would know its estimate, and could check that the batch ends where KIP-126 ends it.

A capture does not show when a batch was closed, only that it was after its last record came and before its request was
sent. Batches for several brokers may have been closed in any order in that time. So several estimates are possible. We
follow all of them side by side (`estimates`), each with the closes and splits that lead to it (`state`).

This gives three results. First, a batch agrees with KIP-126 if every possible estimate ends it where it ended, and
disagrees if none does. If only some do, it is not known; but from then on only these are possible (`fidelity`). Second,
all batches together give an order of closes and splits in which each batch ends where it did. The captured lane uses
that order, which is possible, but need not be the real one (`order`). Third, one of the values that batch.size may have
had fits nearly all batches (`batch_size`).
"""
