"""KIP-81 (a proposal), KIP-72 and buffer.memory: memory of consumers, brokers and producers.

Consumers and brokers share SimpleMemoryPool (`pool`), and are replayed by when the capture gives memory back, or at a
pace of their own; what consumers receive under other fetch limits comes from the closed loop of fetch_max_bytes as rows
of MEMORY_EVENTS (`responses`). Producers have BufferPool (`producer.buffer_pool`), and a closed loop of their own: the
threads that send, and wait for memory (`producer.threads`).
"""
