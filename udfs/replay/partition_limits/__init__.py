"""KIP-578 (a proposal): limits on partitions, and the placement of replicas."""
