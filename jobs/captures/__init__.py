"""What a run reads: capture files, the parts of them that tasks read, and names of clusters, brokers and topics."""
