import java.util.*;
import java.util.concurrent.atomic.*;
import org.apache.kafka.clients.producer.*;

/** A producer that sends the same records under all settings: compressible ones, then random ones, and so on. Its
 *  estimate of how well they compress is then wrong, and batches are refused as MESSAGE_TOO_LARGE. Prints its own count
 *  of splits. Arguments: bootstrap topic seed records records-a-ms partitions key=value...; if `partitions` is 0, the
 *  client's partitioner chooses the partitions, otherwise records go to this many partitions in turn. */
public class SeededProducer {
    public static void main(String[] a) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", a[0]);
        p.put("max.request.size", "8000000");
        p.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        for (int i = 6; i < a.length; i++) p.put(a[i].split("=")[0], a[i].split("=")[1]);
        int n = Integer.parseInt(a[3]), pace = Integer.parseInt(a[4]), partitions = Integer.parseInt(a[5]);
        Random r = new Random(Long.parseLong(a[2]));
        AtomicInteger failed = new AtomicInteger();
        try (KafkaProducer<byte[], byte[]> k = new KafkaProducer<>(p)) {
            for (int i = 0; i < n; i++) {
                byte[] v = new byte[600 + r.nextInt(800)];
                double randomShare = ((i / Math.max(1, n / 6)) % 2 == 0) ? 0.05 : 0.95;
                if (r.nextDouble() < randomShare) r.nextBytes(v);
                else Arrays.fill(v, (byte) ('a' + i % 26));
                k.send(new ProducerRecord<>(a[1], partitions > 0 ? i % partitions : null, null, v), (m, e) -> { if (e != null) failed.incrementAndGet(); });
                if (i % pace == 0) Thread.sleep(1);
            }
            k.flush();
            for (var e : k.metrics().entrySet())
                if (e.getKey().name().equals("batch-split-total"))
                    System.out.println("batch-split-total " + ((Number) e.getValue().metricValue()).longValue());
            System.out.println("failed " + failed);
        }
    }
}
