import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.errors.TimeoutException;

/** A producer that sends records at a fixed pace, even if earlier ones are still on their way. Prints how long sends
 *  blocked. Arguments: bootstrap topic seed records us-a-record bytes partitions threads key=value...; thread
 *  i % threads sends record i to partition i % partitions. */
public class PacedProducer {
    static final double BLOCKED_MS = 5;

    public static void main(String[] a) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", a[0]);
        p.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        for (int i = 8; i < a.length; i++) p.put(a[i].split("=")[0], a[i].split("=")[1]);
        int n = Integer.parseInt(a[3]), gap = Integer.parseInt(a[4]), bytes = Integer.parseInt(a[5]);
        int partitions = Integer.parseInt(a[6]), threads = Integer.parseInt(a[7]);
        Random r = new Random(Long.parseLong(a[2]));
        byte[][] values = new byte[n][];
        for (int i = 0; i < n; i++) r.nextBytes(values[i] = new byte[bytes / 2 + r.nextInt(bytes)]);
        double[] ms = new double[n];
        AtomicInteger failed = new AtomicInteger();
        AtomicLong least = new AtomicLong(Long.MAX_VALUE);
        try (KafkaProducer<byte[], byte[]> k = new KafkaProducer<>(p)) {
            for (boolean known = false; !known; ) {
                try {
                    known = k.partitionsFor(a[1]).size() == partitions;
                } catch (TimeoutException e) {
                    // max.block.ms is for metadata, too.
                }
            }
            Metric free = metric(k, "buffer-available-bytes");
            long start = System.nanoTime();
            List<Thread> senders = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                int first = t;
                senders.add(new Thread(() -> {
                    for (int i = first; i < n; i += threads) {
                        long due = start + i * 1000L * gap;
                        while (System.nanoTime() < due) java.util.concurrent.locks.LockSupport.parkNanos(due - System.nanoTime());
                        long begun = System.nanoTime();
                        k.send(new ProducerRecord<>(a[1], i % partitions, null, values[i]), (m, e) -> { if (e != null) failed.incrementAndGet(); });
                        ms[i] = (System.nanoTime() - begun) / 1e6;
                        long left = ((Number) free.metricValue()).longValue();
                        least.accumulateAndGet(left, Math::min);
                    }
                }));
            }
            senders.forEach(Thread::start);
            for (Thread sender : senders) sender.join();
            k.flush();
            double[] blocked = Arrays.stream(ms).skip(threads).filter(each -> each >= BLOCKED_MS).sorted().toArray();
            System.out.println("blocked " + blocked.length);
            for (int percent : new int[] {50, 99, 100})
                System.out.println("ms-" + percent + " " + (blocked.length == 0 ? 0 : blocked[(blocked.length - 1) * percent / 100]));
            System.out.println("used-max " + (((Number) metric(k, "buffer-total-bytes").metricValue()).longValue() - least.get()));
            System.out.println("wait-ms " + ((Number) metric(k, "bufferpool-wait-time-ns-total").metricValue()).doubleValue() / 1e6);
            System.out.println("exhausted " + ((Number) metric(k, "buffer-exhausted-total").metricValue()).longValue());
            System.out.println("failed " + failed);
        }
    }

    static Metric metric(KafkaProducer<byte[], byte[]> k, String name) {
        return k.metrics().values().stream().filter(m -> m.metricName().name().equals(name)).findFirst().orElseThrow();
    }
}
