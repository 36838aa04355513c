"""What the five replays share: the queue of events, maps, histograms, columns out of Arrow, verdicts and their rows."""
