import java.util.*;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.apache.kafka.clients.producer.*;

/** Producers that all send at the same moments, even if earlier records are still on their way. Prints how long
 *  requests took. Arguments: bootstrap topic seed producers rounds ms-a-round records bytes partitions key=value...;
 *  a producer sends `records` records to each partition in a round. Every second producer has acks=1, the others
 *  acks=all. */
public class BurstProducers {
    static final int WARM_UP_MS = 2000;

    public static void main(String[] a) throws Exception {
        int producers = Integer.parseInt(a[3]), rounds = Integer.parseInt(a[4]), gap = Integer.parseInt(a[5]);
        int records = Integer.parseInt(a[6]), bytes = Integer.parseInt(a[7]), partitions = Integer.parseInt(a[8]);
        AtomicInteger failed = new AtomicInteger();
        double[] latency = new double[producers];
        long start = System.nanoTime() + WARM_UP_MS * 1_000_000L;
        List<Thread> threads = IntStream.range(0, producers).mapToObj(i -> new Thread(() -> {
            Properties p = new Properties();
            p.put("bootstrap.servers", a[0]);
            p.put("client.id", a[1] + "-" + i);
            p.put("acks", i % 2 == 0 ? "all" : "1");
            p.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
            p.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
            for (int k = 9; k < a.length; k++) p.put(a[k].split("=")[0], a[k].split("=")[1]);
            Random r = new Random(Long.parseLong(a[2]) + i);
            try (KafkaProducer<byte[], byte[]> k = new KafkaProducer<>(p)) {
                k.partitionsFor(a[1]);
                for (int round = 0; round < rounds; round++) {
                    long due = start + round * 1_000_000L * gap;
                    while (System.nanoTime() < due) LockSupport.parkNanos(due - System.nanoTime());
                    for (int n = 0; n < records * partitions; n++) {
                        byte[] value = new byte[bytes / 2 + r.nextInt(bytes)];
                        r.nextBytes(value);
                        k.send(new ProducerRecord<>(a[1], n % partitions, null, value), (m, e) -> { if (e != null) failed.incrementAndGet(); });
                    }
                }
                k.flush();
                latency[i] = (Double) k.metrics().values().stream().filter(m -> m.metricName().name().equals("request-latency-avg")
                    && m.metricName().group().equals("producer-metrics")).findFirst().orElseThrow().metricValue();
            }
        })).toList();
        threads.forEach(Thread::start);
        for (Thread thread : threads) thread.join();
        System.out.println("took-ms " + (System.nanoTime() - start) / 1e6);
        System.out.println("request-latency-ms " + Arrays.stream(latency).average().orElseThrow());
        System.out.println("failed " + failed);
    }
}
