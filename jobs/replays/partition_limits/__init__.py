"""The job side of the replay of partition_limits (KIP-578, a proposal: limits on partitions)."""
