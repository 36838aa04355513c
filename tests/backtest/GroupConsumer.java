import java.time.Duration;
import java.util.*;
import java.util.concurrent.atomic.*;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.*;

/** Members of a group that work `us-a-record` on each record. They end when they have had `records` records together,
 *  or `ms` after the first one. Arguments: bootstrap topic group members us-a-record records ms key=value...; member i
 *  has the client.id group-i. */
public class GroupConsumer {
    public static void main(String[] a) throws Exception {
        int members = Integer.parseInt(a[3]), us = Integer.parseInt(a[4]), wanted = Integer.parseInt(a[5]);
        long ms = Long.parseLong(a[6]);
        AtomicInteger had = new AtomicInteger();
        AtomicLong end = new AtomicLong(Long.MAX_VALUE);
        List<Thread> threads = new ArrayList<>();
        for (int m = 0; m < members; m++) {
            Properties p = new Properties();
            p.put("bootstrap.servers", a[0]);
            p.put("group.id", a[2]);
            p.put("client.id", a[2] + "-" + m);
            p.put("auto.offset.reset", "earliest");
            p.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
            p.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
            for (int i = 7; i < a.length; i++) p.put(a[i].split("=")[0], a[i].split("=")[1]);
            threads.add(new Thread(() -> {
                try (KafkaConsumer<byte[], byte[]> k = new KafkaConsumer<>(p)) {
                    k.subscribe(List.of(a[1]));
                    while (had.get() < wanted && System.nanoTime() < end.get()) {
                        int n = k.poll(Duration.ofMillis(100)).count();
                        if (n > 0) end.compareAndSet(Long.MAX_VALUE, System.nanoTime() + ms * 1_000_000L);
                        long until = System.nanoTime() + n * us * 1000L;
                        while (System.nanoTime() < until) LockSupport.parkNanos(until - System.nanoTime());
                        had.addAndGet(n);
                    }
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) thread.join();
        System.out.println("records " + had);
    }
}
