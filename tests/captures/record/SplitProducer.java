import java.util.*;
import java.util.concurrent.atomic.*;
import org.apache.kafka.clients.producer.*;

/** A producer whose records stop to compress now and then, so that its estimate is wrong and batches come back
 *  MESSAGE_TOO_LARGE and are split. Its random bytes are slices of one block: as random as any to a codec that sees a batch
 *  at a time, and small in a capture that is compressed as a whole. Several topics have commas between them, and one record
 *  each in turn. Arguments: bootstrap topics codec records seed bytes-of-a-value records-a-ms setting=value... */
public class SplitProducer {
    static final int CYCLE = 1500, RANDOM_OF_CYCLE = 250, BLOCK = 1 << 15;

    public static void main(String[] a) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", a[0]);
        p.put("compression.type", a[2]);
        p.put("linger.ms", "20");
        p.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        for (String setting : Arrays.copyOfRange(a, 7, a.length)) p.put(setting.split("=")[0], setting.split("=")[1]);
        String[] topics = a[1].split(",");
        int bytes = Integer.parseInt(a[5]), atOnce = Integer.parseInt(a[6]);
        byte[] block = new byte[BLOCK];
        new Random(Long.parseLong(a[4])).nextBytes(block);
        AtomicInteger failed = new AtomicInteger();
        int at = 0;
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p)) {
            for (int i = 0; i < Integer.parseInt(a[3]); i++) {
                byte[] value = new byte[bytes];
                int random = i / topics.length % CYCLE >= CYCLE - RANDOM_OF_CYCLE ? value.length : value.length / 2;
                at = at + random > BLOCK ? 0 : at;
                System.arraycopy(block, at, value, 0, random);
                at += random;
                producer.send(new ProducerRecord<>(topics[i % topics.length], value), (m, e) -> { if (e != null) failed.incrementAndGet(); });
                if (i % atOnce == 0) Thread.sleep(1);
            }
            producer.flush();
            for (var e : producer.metrics().entrySet())
                if (e.getKey().name().equals("batch-split-total"))
                    System.out.println(p.get("client.id") + " batch-split-total " + e.getValue().metricValue() + " failed " + failed);
        }
    }
}
