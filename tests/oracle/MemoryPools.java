import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.kafka.clients.producer.BufferExhaustedException;
import org.apache.kafka.clients.producer.internals.BufferPool;
import org.apache.kafka.common.memory.GarbageCollectedMemoryPool;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.memory.SimpleMemoryPool;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;

/**
 * Runs sequences of allocations on Kafka's own pools; a line in, a line out.
 *
 *   simple SIZE MAX_SINGLE STRICT | collected ... | buffers TOTAL POOLABLE   a new pool: "new"
 *   + ID SIZE     allocate (a buffer pool's in a thread of its own)          outcome and available memory
 *   ! ID SIZE     allocate from a buffer pool without waiting
 *   - ID          release; twice is up to the pool
 */
public class MemoryPools {
    static MemoryPool memory;
    static BufferPool buffers;
    static ReentrantLock lock;
    static final Map<String, ByteBuffer> held = new HashMap<>();
    static final Map<String, Thread> threads = new HashMap<>();
    static final Map<String, String> states = new HashMap<>();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine())
            out.append(step(line.split(" "))).append('\n');
        System.out.print(out);
        System.out.flush();
        Runtime.getRuntime().halt(0);  // waiters that nobody serves are left behind
    }

    static String step(String[] word) throws Exception {
        switch (word[0]) {
            case "simple":
            case "collected":
            case "buffers":
                return open(word);
            case "-":
                return memory != null ? release(word[1]) : deallocate(word[1]);
            default:
                return memory != null ? tryAllocate(word[1], Integer.parseInt(word[2])) : allocate(word);
        }
    }

    static String open(String[] word) throws Exception {
        held.clear();
        threads.clear();
        states.clear();
        memory = null;
        buffers = null;
        long size = Long.parseLong(word[1]);
        int second = Integer.parseInt(word[2]);
        if (word[0].equals("buffers")) {
            buffers = new BufferPool(size, second, new Metrics(), Time.SYSTEM, "oracle");
            Field field = BufferPool.class.getDeclaredField("lock");
            field.setAccessible(true);
            lock = (ReentrantLock) field.get(buffers);
        } else {
            boolean strict = word[3].equals("1");
            memory = word[0].equals("simple")
                ? new SimpleMemoryPool(size, second, strict, null)
                : new GarbageCollectedMemoryPool(size, second, strict, null);
        }
        return "new";
    }

    static String tryAllocate(String id, int size) {
        try {
            ByteBuffer buffer = memory.tryAllocate(size);
            if (buffer != null)
                held.put(id, buffer);
            return (buffer == null ? "refused " : "granted ") + memory.availableMemory() + " " + memory.isOutOfMemory();
        } catch (IllegalArgumentException e) {
            return "illegal " + memory.availableMemory() + " " + memory.isOutOfMemory();
        }
    }

    static String release(String id) {
        try {
            memory.release(held.get(id));
            return "released " + memory.availableMemory() + " " + memory.isOutOfMemory();
        } catch (IllegalArgumentException e) {
            return "illegal " + memory.availableMemory() + " " + memory.isOutOfMemory();
        }
    }

    static String allocate(String[] word) throws Exception {
        String id = word[1];
        int size = Integer.parseInt(word[2]);
        long mostMs = word[0].equals("!") ? 0 : 3_600_000;
        Thread thread = new Thread(() -> {
            String state = "granted";
            ByteBuffer buffer = null;
            try {
                buffer = buffers.allocate(size, mostMs);
            } catch (BufferExhaustedException e) {
                state = "exhausted";
            } catch (IllegalArgumentException e) {
                state = "illegal";
            } catch (InterruptedException e) {
                state = "interrupted";
            }
            synchronized (states) {
                states.put(id, state);
                if (buffer != null)
                    held.put(id, buffer);
            }
        });
        thread.setDaemon(true);
        threads.put(id, thread);
        thread.start();
        return settled();
    }

    static String deallocate(String id) throws Exception {
        synchronized (states) {
            buffers.deallocate(held.get(id), held.get(id).capacity());
            states.put(id, "released");
        }
        return settled();
    }

    /** Once every thread has ended or waits for memory: the ids by state, and the available memory. */
    static String settled() throws Exception {
        while (!isSettled())
            Thread.sleep(0, 20_000);
        List<String> granted = new ArrayList<>();
        List<String> exhausted = new ArrayList<>();
        List<String> illegal = new ArrayList<>();
        synchronized (states) {
            states.forEach((id, state) -> {
                (state.equals("granted") ? granted : state.equals("exhausted") ? exhausted
                    : state.equals("illegal") ? illegal : new ArrayList<String>()).add(id);
            });
        }
        granted.sort(null);
        exhausted.sort(null);
        illegal.sort(null);
        return "granted " + String.join(",", granted) + " exhausted " + String.join(",", exhausted) + " illegal "
            + String.join(",", illegal) + " queued " + buffers.queued() + " available " + buffers.availableMemory()
            + " unallocated " + buffers.unallocatedMemory();
    }

    /** Seen under the pool's lock, where nobody is on the way: a thread that was signalled queues for that lock. */
    static boolean isSettled() {
        lock.lock();
        try {
            return !lock.hasQueuedThreads() && threads.values().stream()
                .allMatch(thread -> !thread.isAlive() || thread.getState() == Thread.State.TIMED_WAITING);
        } finally {
            lock.unlock();
        }
    }
}
