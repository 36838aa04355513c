"""Which compression estimates were possible when each captured batch was created, and what that shows.

A producer creates a batch with the estimate that it has of the topic's compression, and that decides how many records
the batch takes. Each batch that is closed moves the estimate, each that is split raises it. So whoever knew what was
closed before a batch was created would know its estimate, and could check that the batch ends where KIP-126 ends it.

A capture does not show when a batch was closed, only that it was after its last record had come and before its request
was sent. Batches that go to several brokers may have been closed in any order meanwhile. So a few estimates are
possible. We follow all of them side by side (`estimates`), each with the closes and splits that lead to it (`state`).

That tells three things. A batch agrees with KIP-126 if every possible estimate ends it where it ended, and disagrees if
none does. If only some do, nobody knows; but from there on only these are possible (`fidelity`). All batches together
tell an order of closes and splits in which each of them ends where it did. The captured lane goes by that order, which
need not be what was, but can have been (`order`). And of the values that batch.size may have had, one fits nearly all
batches (`batch_size`).
"""
