import java.time.Duration;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;

/** Consumers that each read all partitions of a topic, without a group, from its end: each has a session with every broker.
 *  Arguments: bootstrap client.id topic readers seconds seconds-of-the-first; the first two end earlier, and leave their
 *  slots. */
public class Readers {
    static final int EARLY = 2;

    public static void main(String[] a) throws Exception {
        int readers = Integer.parseInt(a[3]), seconds = Integer.parseInt(a[4]), early = Integer.parseInt(a[5]);
        List<Thread> all = IntStream.range(0, readers)
            .mapToObj(i -> new Thread(() -> read(a[0], a[1], a[2], i < EARLY ? early : seconds))).toList();
        for (Thread reader : all) {
            reader.start();
            Thread.sleep(200);
        }
        for (Thread reader : all) reader.join();
    }

    static void read(String bootstrap, String client, String topic, int seconds) {
        Map<String, Object> p = Map.of("bootstrap.servers", bootstrap, "client.id", client, "fetch.max.wait.ms", "9000",
            "key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer",
            "value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(p)) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                .map(info -> new TopicPartition(topic, info.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToEnd(partitions);
            while (System.nanoTime() < end) consumer.poll(Duration.ofMillis(500));
        }
    }
}
