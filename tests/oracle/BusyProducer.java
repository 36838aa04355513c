import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.MetadataSnapshot;
import org.apache.kafka.clients.producer.internals.BufferPool;
import org.apache.kafka.clients.producer.internals.ProducerBatch;
import org.apache.kafka.clients.producer.internals.RecordAccumulator;
import org.apache.kafka.clients.producer.internals.TransactionManager;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.ProducerIdAndEpoch;
import org.apache.kafka.common.utils.Time;

/**
 * What an idempotent producer of Kafka sends to two brokers, one partition each, if its Sender comes round only now and then
 * and sends of the application wait now and then. Brokers answer MESSAGE_TOO_LARGE to batches above LIMIT, and
 * OUT_OF_ORDER_SEQUENCE_NUMBER to what comes behind those. Times are simulated.
 *
 * Arguments: BATCH_SIZE LIMIT LINGER_MS CODEC RECORDS SEED. Lines out: `record PARTITION MS SIZE` in the order of appending;
 * `batch PARTITION SEQUENCE RECORDS SIZE REQUEST_US RESPONSE_US ERROR` in the order of closes; `splits N`.
 */
public class BusyProducer {
    private static final int IN_FLIGHT = 5, PARTITIONS = 2;

    private static final class Clock implements Time {
        long us = 1_000_000_000L;
        public long milliseconds() { return us / 1000; }
        public long nanoseconds() { return us * 1000; }
        public void sleep(long ms) { us += ms * 1000; }
        public void waitObject(Object of, Supplier<Boolean> done, long deadline) { throw new UnsupportedOperationException(); }
    }

    private record Answer(long us, int partition, ProducerBatch batch, Errors error) {}

    private final Clock clock = new Clock();
    private final Random random;
    private final String topic = "topic";
    private final int limit;
    private final TransactionManager transactions;
    private final RecordAccumulator accumulator;
    private final MetadataSnapshot metadata;
    private final PriorityQueue<Answer> answers = new PriorityQueue<>(Comparator.comparingLong(Answer::us));
    private final int[] inFlight = new int[PARTITIONS], expected = new int[PARTITIONS];
    private final long[] lastRequest = new long[PARTITIONS], lastAnswer = new long[PARTITIONS];
    private final StringBuilder out = new StringBuilder();
    private int splits = 0;

    BusyProducer(int batchSize, int limit, int linger, String codec, long seed) throws Exception {
        this.limit = limit;
        random = new Random(seed);
        Metrics metrics = new Metrics(clock);
        transactions = new TransactionManager(new LogContext(), null, 0, 0L, new ApiVersions(), false);
        Method set = TransactionManager.class.getDeclaredMethod("setProducerIdAndEpoch", ProducerIdAndEpoch.class);
        set.setAccessible(true);
        set.invoke(transactions, new ProducerIdAndEpoch(1L, (short) 0));
        accumulator = new RecordAccumulator(new LogContext(), batchSize, Compression.of(codec).build(), linger, 0L, 0L, 1 << 30,
            metrics, "group", clock, transactions, new BufferPool(1L << 26, batchSize, metrics, clock, "group"));
        Map<Integer, Node> nodes = new HashMap<>();
        List<MetadataResponse.PartitionMetadata> partitions = new java.util.ArrayList<>();
        for (int p = 0; p < PARTITIONS; p++) {
            nodes.put(p, new Node(p, "localhost", 1 + p));
            partitions.add(new MetadataResponse.PartitionMetadata(Errors.NONE, new TopicPartition(topic, p), Optional.of(p),
                Optional.of(1), List.of(p), List.of(p), List.of()));
        }
        metadata = new MetadataSnapshot("cluster", nodes, partitions, Set.of(), Set.of(), Set.of(), nodes.get(0), new HashMap<>());
    }

    private static int records(ProducerBatch batch) throws Exception {
        Field count = ProducerBatch.class.getDeclaredField("recordCount");
        count.setAccessible(true);
        return count.getInt(batch);
    }

    private Errors answered(ProducerBatch batch, int partition) throws Exception {
        if (batch.estimatedSizeInBytes() > limit && records(batch) > 1)
            return Errors.MESSAGE_TOO_LARGE;
        if (batch.baseSequence() != expected[partition])
            return Errors.OUT_OF_ORDER_SEQUENCE_NUMBER;
        expected[partition] += records(batch);
        return Errors.NONE;
    }

    /** Sender.completeBatch */
    private void complete(Answer answer) throws Exception {
        inFlight[answer.partition]--;
        if (answer.error == Errors.MESSAGE_TOO_LARGE) {
            Method remove = TransactionManager.class.getDeclaredMethod("removeInFlightBatch", ProducerBatch.class);
            remove.setAccessible(true);
            remove.invoke(transactions, answer.batch);
            accumulator.splitAndReenqueue(answer.batch);
            splits++;
        } else if (answer.error == Errors.OUT_OF_ORDER_SEQUENCE_NUMBER) {
            accumulator.reenqueue(answer.batch, clock.milliseconds());
        } else {
            transactions.handleCompletedBatch(answer.batch, new ProduceResponse.PartitionResponse(Errors.NONE, 0L, 0L, 0L));
            answer.batch.complete(0L, 0L);
        }
    }

    /** Sender.runOnce: answers that have come, then one batch of each partition that is ready. */
    private void runOnce() throws Exception {
        while (!answers.isEmpty() && answers.peek().us <= clock.us)
            complete(answers.poll());
        Set<Node> ready = new java.util.HashSet<>(accumulator.ready(metadata, clock.milliseconds()).readyNodes);
        ready.removeIf(node -> inFlight[node.id()] == IN_FLIGHT || lastRequest[node.id()] >= clock.us);
        for (Map.Entry<Integer, List<ProducerBatch>> drained : accumulator.drain(metadata, ready, 1 << 30, clock.milliseconds()).entrySet()) {
            for (ProducerBatch batch : drained.getValue()) {
                int p = drained.getKey();
                long request = clock.us + 50 + random.nextInt(200);
                long response = Math.max(lastAnswer[p], request) + 300 + random.nextInt(6000);
                Errors error = answered(batch, p);
                lastRequest[p] = request;
                lastAnswer[p] = response;
                inFlight[p]++;
                answers.add(new Answer(response, p, batch, error));
                out.append("batch ").append(p).append(' ').append(batch.baseSequence()).append(' ').append(records(batch)).append(' ')
                    .append(batch.estimatedSizeInBytes()).append(' ').append(request).append(' ').append(response).append(' ')
                    .append(error.code()).append('\n');
            }
        }
    }

    private long pass = 0;

    /** Let the Sender go on until this time. */
    private void until(long us) throws Exception {
        while (pass <= us) {
            clock.us = Math.max(clock.us, pass);
            runOnce();
            pass = Math.max(pass, clock.us) + 500 + (random.nextInt(4) == 0 ? random.nextInt(40_000) : random.nextInt(3000));
        }
        clock.us = Math.max(clock.us, us);
    }

    private void send(int records) throws Exception {
        long us = clock.us;
        pass = us;
        int partition = 0;
        for (int i = 0; i < records; i++) {
            if (random.nextInt(25) == 0)
                partition = 1 - partition;
            us += random.nextInt(10) == 0 ? random.nextInt(2000) : random.nextInt(60);
            until(us);
            long sent = clock.milliseconds();
            if (random.nextInt(40) == 0) { // the thread has to wait before it appends
                us += random.nextInt(3_000);
                until(us);
            }
            byte[] value = new byte[60 + random.nextInt(80)];
            if (random.nextInt(100) < (i / (records / 6) % 2 == 0 ? 5 : 95))
                random.nextBytes(value);
            else
                Arrays.fill(value, (byte) 'a');
            accumulator.append(topic, partition, sent, null, value, new Header[0], null, 0L, clock.milliseconds(), metadata.cluster());
            out.append("record ").append(partition).append(' ').append(sent).append(' ').append(value.length).append('\n');
        }
        while (accumulator.hasUndrained() || !answers.isEmpty())
            until(clock.us + 1000);
        out.append("splits ").append(splits).append('\n');
    }

    public static void main(String[] a) throws Exception {
        BusyProducer producer = new BusyProducer(Integer.parseInt(a[0]), Integer.parseInt(a[1]), Integer.parseInt(a[2]), a[3], Long.parseLong(a[5]));
        producer.send(Integer.parseInt(a[4]));
        System.out.print(producer.out);
    }
}
