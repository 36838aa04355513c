"""KIP-81 (a proposal), KIP-72 and buffer.memory: memory of consumers, brokers and producers.

Consumers and brokers have the same pool, SimpleMemoryPool (`pool`). Their replay releases memory at the captured
times, or at a pace that the lane sets. The responses that consumers get under other fetch limits come from the closed
loop of fetch_max_bytes, as rows of MEMORY_EVENTS (`responses`). Producers have BufferPool (`producer.buffer_pool`), and
a closed loop of their own: threads that send, and wait for memory (`producer.threads`).
"""
