"""What a run reads: which files, cut into what parts, told by logs or packets, and under which names."""
