import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.clients.MetadataSnapshot;
import org.apache.kafka.clients.producer.internals.BufferPool;
import org.apache.kafka.clients.producer.internals.ProducerBatch;
import org.apache.kafka.clients.producer.internals.RecordAccumulator;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;

/**
 * What Kafka's own producer classes do with records. Lines in: `estimate RATIO...` with float bits that are observed one
 * after the other; or `accumulate BATCH_SIZE LIMIT LINGER CODEC SEED HALVES` and then a line `WAIT_MS KIND SIZE` a record,
 * and `end`. Lines out: the estimate's bits after each; or `batch RECORDS SIZE` and `split` in their order, and
 * `end ESTIMATE_BITS`. A batch larger than LIMIT is refused at once, but for one whose split made itself again: that would
 * not end before delivery.timeout.ms, unless it had not come of a split and the release HALVES what did.
 */
public class AccumulatorOfRecords {
    private static final String TOPIC = "topic";
    private static final Class<?> ESTIMATOR = inRecordPackage("CompressionRatioEstimator");
    private static final Class<?> TYPE = inRecordPackage("CompressionType");

    /** Kafka 4.3 moved org.apache.kafka.common.record to its subpackage `internal`. */
    private static Class<?> inRecordPackage(String name) {
        for (String place : new String[] {"org.apache.kafka.common.record.internal.", "org.apache.kafka.common.record."}) {
            try {
                return Class.forName(place + name);
            } catch (ClassNotFoundException absent) {
                continue;
            }
        }
        throw new IllegalStateException(name);
    }

    private static Object type(String codec) throws Exception {
        return TYPE.getMethod("forName", String.class).invoke(null, codec);
    }

    private static void reset() throws Exception {
        ESTIMATOR.getMethod("resetEstimation", String.class).invoke(null, TOPIC);
    }

    private static int bits(String codec) throws Exception {
        Object ratio = ESTIMATOR.getMethod("estimation", String.class, TYPE).invoke(null, TOPIC, type(codec));
        return Float.floatToIntBits((float) ratio);
    }

    private static final class Clock implements Time {
        long now = 0;
        public long milliseconds() { return now; }
        public long nanoseconds() { return now * 1000000L; }
        public void sleep(long ms) { now += ms; }
        public void waitObject(Object of, Supplier<Boolean> done, long deadline) { throw new UnsupportedOperationException(); }
    }

    private final Clock clock = new Clock();
    private final StringBuilder out;
    private final int limit;
    private final boolean halves;
    private final RecordAccumulator accumulator;
    private final MetadataSnapshot metadata;
    private boolean isStuck = false; // the last split made the same batch again, and so would the next

    AccumulatorOfRecords(int batchSize, int limit, int linger, String codec, boolean halves, StringBuilder out) throws Exception {
        this.out = out;
        this.limit = limit;
        this.halves = halves;
        Metrics metrics = new Metrics(clock);
        accumulator = new RecordAccumulator(new LogContext(), batchSize, Compression.of(codec).build(), linger, 0L, 0L, 1 << 30, metrics,
            "group", clock, null, new BufferPool(1L << 26, batchSize, metrics, clock, "group"));
        Node node = new Node(0, "localhost", 1);
        List<Integer> replicas = List.of(0);
        metadata = new MetadataSnapshot("cluster", Map.of(0, node), List.of(new MetadataResponse.PartitionMetadata(Errors.NONE,
            new TopicPartition(TOPIC, 0), Optional.of(0), Optional.of(1), replicas, replicas, List.of())),
            Set.of(), Set.of(), Set.of(), node, new HashMap<>());
    }

    private void drain() throws Exception {
        for (boolean again = true; again;) {
            again = false;
            RecordAccumulator.ReadyCheckResult ready = accumulator.ready(metadata, clock.now);
            for (List<ProducerBatch> drained : accumulator.drain(metadata, ready.readyNodes, 1 << 30, clock.now).values()) {
                for (ProducerBatch batch : drained) {
                    again = true;
                    Field count = ProducerBatch.class.getDeclaredField("recordCount");
                    count.setAccessible(true);
                    int records = count.getInt(batch), size = batch.estimatedSizeInBytes();
                    out.append("batch ").append(records).append(' ').append(size).append('\n');
                    if (size > limit && records > 1 && !isStuck) {
                        Method isSplit = ProducerBatch.class.getDeclaredMethod("isSplitBatch");
                        isSplit.setAccessible(true);
                        boolean isHalved = halves && !(boolean) isSplit.invoke(batch); // when it comes back
                        isStuck = accumulator.splitAndReenqueue(batch) == 1 && !isHalved;
                        out.append("split\n");
                    } else {
                        batch.complete(0L, 0L);
                        isStuck = false;
                    }
                    accumulator.deallocate(batch);
                }
            }
        }
    }

    private void wait(int ms) throws Exception {
        for (int i = 0; i < ms; i++) {
            clock.now++;
            drain();
        }
    }

    private static byte[] value(char kind, int size, Random random) {
        byte[] value = new byte[size];
        if (kind == 'p')
            random.nextBytes(value);
        else if (kind == 'g') { // bytesWithGoodCompression of RecordAccumulatorTest
            ByteBuffer buffer = ByteBuffer.wrap(value);
            while (buffer.remaining() >= 4)
                buffer.putInt(random.nextInt(1000));
        } else
            Arrays.fill(value, (byte) 'a');
        return value;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            reset();
            if (words[0].equals("estimate")) {
                for (int i = 1; i < words.length; i++) {
                    ESTIMATOR.getMethod("updateEstimation", String.class, TYPE, float.class)
                        .invoke(null, TOPIC, type("gzip"), Float.intBitsToFloat(Integer.parseInt(words[i])));
                    out.append(bits("gzip")).append('\n');
                }
                continue;
            }
            int linger = Integer.parseInt(words[3]);
            Random random = new Random(Long.parseLong(words[5]));
            AccumulatorOfRecords kafka = new AccumulatorOfRecords(
                Integer.parseInt(words[1]), Integer.parseInt(words[2]), linger, words[4], Boolean.parseBoolean(words[6]), out);
            for (String record = in.readLine(); !record.equals("end"); record = in.readLine()) {
                String[] parts = record.split(" ");
                kafka.wait(Integer.parseInt(parts[0]));
                kafka.accumulator.append(TOPIC, 0, kafka.clock.now, null,
                    value(parts[1].charAt(0), Integer.parseInt(parts[2]), random), new Header[0], null, 0L, kafka.clock.now,
                    kafka.metadata.cluster());
                kafka.drain();
            }
            kafka.wait(linger + 1);
            out.append("end ").append(bits(words[4])).append('\n');
        }
        System.out.print(out);
    }
}
