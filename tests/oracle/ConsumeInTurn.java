import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.FetchSessionHandler.FetchRequestData;
import org.apache.kafka.clients.consumer.internals.AbstractFetch;
import org.apache.kafka.clients.consumer.internals.AutoOffsetResetStrategy;
import org.apache.kafka.clients.consumer.internals.ConsumerMetadata;
import org.apache.kafka.clients.consumer.internals.Deserializers;
import org.apache.kafka.clients.consumer.internals.FetchBuffer;
import org.apache.kafka.clients.consumer.internals.FetchCollector;
import org.apache.kafka.clients.consumer.internals.FetchConfig;
import org.apache.kafka.clients.consumer.internals.FetchMetricsManager;
import org.apache.kafka.clients.consumer.internals.FetchMetricsRegistry;
import org.apache.kafka.clients.consumer.internals.SubscriptionState;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;

/**
 * Each line is a consumer that reads a backlog: "maxBytes maxPollRecords answerUs recordUs", after a bar partitions as
 * "node:records:most". A record is one byte, and a batch; an answer takes answerUs, work on a record recordUs. Kafka's
 * own client decides what is asked for when, and what poll() returns. Prints the client's first order of partitions,
 * and behind bars "node sentAt p:records ..." for each request that gets records, by node and time.
 */
public class ConsumeInTurn extends AbstractFetch {
    private static final LogContext LOG = new LogContext();
    private static final FetchMetricsManager METRICS = new FetchMetricsManager(new Metrics(), new FetchMetricsRegistry());

    /** An answer that is on its way. */
    private record Answer(long at, Node node, FetchRequestData asked, Map<TopicPartition, Integer> records) {
    }

    private final int[] answerAndRecordUs;
    private final int[] most;
    private final int[] left;
    private final FetchCollector<byte[], byte[]> collector;
    private final PriorityQueue<Answer> answers =
        new PriorityQueue<>(Comparator.comparingLong(Answer::at).thenComparing(answer -> answer.node().id()));
    private final Map<Integer, List<String>> served = new TreeMap<>();

    ConsumeInTurn(ConsumerMetadata metadata, SubscriptionState subscriptions, FetchConfig config, FetchBuffer buffer,
                  int[] answerAndRecordUs, int[] left, int[] most) {
        super(LOG, metadata, subscriptions, config, buffer, METRICS, Time.SYSTEM, new ApiVersions());
        this.answerAndRecordUs = answerAndRecordUs;
        this.left = left;
        this.most = most;
        Deserializers<byte[], byte[]> deserializers =
            new Deserializers<>(new ByteArrayDeserializer(), new ByteArrayDeserializer(), new Metrics());
        this.collector = new FetchCollector<>(LOG, metadata, subscriptions, config, deserializers, METRICS, Time.SYSTEM);
    }

    @Override
    protected boolean isUnavailable(Node node) {
        return false;
    }

    @Override
    protected void maybeThrowAuthFailure(Node node) {
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\\|");
            int[] client = numbers(parts[0], " ");
            int[][] partitions = Stream.of(parts[1].split(" ")).map(part -> numbers(part, ":")).toArray(int[][]::new);
            consumer(client, partitions).run();
        }
    }

    private static int[] numbers(String text, String separator) {
        return Arrays.stream(text.split(separator)).mapToInt(Integer::parseInt).toArray();
    }

    private static ConsumeInTurn consumer(int[] client, int[][] partitions) {
        SubscriptionState subscriptions = new SubscriptionState(LOG, AutoOffsetResetStrategy.EARLIEST);
        LinkedHashSet<TopicPartition> all = new LinkedHashSet<>();
        for (int p = 0; p < partitions.length; p++) {
            all.add(new TopicPartition("t", p));
        }
        subscriptions.assignFromUser(all);
        ConsumerMetadata metadata = new ConsumerMetadata(
            100, 1000, Long.MAX_VALUE, false, false, subscriptions, LOG, new ClusterResourceListeners());
        metadata.updateWithCurrentRequestVersion(leaders(partitions), false, 0);
        for (TopicPartition p : all) {
            subscriptions.seekValidated(
                p, new SubscriptionState.FetchPosition(0, Optional.empty(), metadata.currentLeader(p)));
        }
        FetchConfig config = new FetchConfig(
            1, client[0], 500, 1 << 20, client[1], false, "", IsolationLevel.READ_UNCOMMITTED);
        return new ConsumeInTurn(metadata, subscriptions, config, new FetchBuffer(LOG), Arrays.copyOfRange(client, 2, 4),
            Stream.of(partitions).mapToInt(p -> p[1]).toArray(), Stream.of(partitions).mapToInt(p -> p[2]).toArray());
    }

    private static MetadataResponse leaders(int[][] partitions) {
        MetadataResponseData data = new MetadataResponseData();
        MetadataResponseData.MetadataResponseTopic topic = new MetadataResponseData.MetadataResponseTopic().setName("t");
        for (int p = 0; p < partitions.length; p++) {
            int node = partitions[p][0];
            if (data.brokers().find(node) == null) {
                data.brokers().add(new MetadataResponseData.MetadataResponseBroker()
                    .setNodeId(node).setHost("broker").setPort(9092 + node));
            }
            topic.partitions().add(new MetadataResponseData.MetadataResponsePartition()
                .setPartitionIndex(p).setLeaderId(node).setReplicaNodes(List.of(node)).setIsrNodes(List.of(node)));
        }
        data.topics().add(topic);
        return new MetadataResponse(data, (short) 9);
    }

    /** One poll() after the other, until nothing is left. */
    private void run() {
        StringBuilder line = new StringBuilder();
        subscriptions.assignedPartitionsList().forEach(p -> line.append(p.partition()).append(' '));
        long now = 0;
        send(now);
        for (int records = 0; records > 0 || !answers.isEmpty();) {
            while (!answers.isEmpty() && answers.peek().at() <= now) {
                deliver(answers.poll());
            }
            records = collector.collectFetch(fetchBuffer).records().values().stream().mapToInt(List::size).sum();
            send(now);
            long next = answers.isEmpty() ? now : Math.max(now, answers.peek().at());
            now = records > 0 ? now + (long) records * answerAndRecordUs[1] : next;
        }
        served.values().forEach(of -> of.forEach(request -> line.append('|').append(request)));
        System.out.println(line);
    }

    private void send(long now) {
        for (Map.Entry<Node, FetchRequestData> request : prepareFetchRequests().entrySet()) {
            createFetchRequest(request.getKey(), request.getValue());
            answer(now, request.getKey(), request.getValue());
        }
    }

    /** ReplicaManager.readFromLog, where each batch is a byte; a broker that has nothing left does not answer. */
    private void answer(long now, Node node, FetchRequestData asked) {
        Map<TopicPartition, Integer> records = new LinkedHashMap<>();
        StringBuilder text = new StringBuilder(node.id() + " " + now);
        int limit = fetchConfig.maxBytes;
        for (TopicPartition partition : asked.toSend().keySet()) {
            int got = Math.min(left[partition.partition()], Math.min(most[partition.partition()], limit));
            left[partition.partition()] -= got;
            limit -= got;
            records.put(partition, got);
            if (got > 0) {
                text.append(' ').append(partition.partition()).append(':').append(got);
            }
        }
        if (limit < fetchConfig.maxBytes) {
            answers.add(new Answer(now + answerAndRecordUs[0], node, asked, records));
            served.computeIfAbsent(node.id(), id -> new ArrayList<>()).add(text.toString());
        }
    }

    private void deliver(Answer answer) {
        LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> data = new LinkedHashMap<>();
        answer.records().forEach((partition, records) -> data.put(
            new TopicIdPartition(Uuid.ZERO_UUID, partition),
            new FetchResponseData.PartitionData().setPartitionIndex(partition.partition()).setHighWatermark(1 << 30)
                .setLastStableOffset(1 << 30).setRecords(batch(partition, records))));
        ClientResponse response = new ClientResponse(
            new RequestHeader(ApiKeys.FETCH, (short) 12, "c", 0), null, answer.node().idString(), 0, 0, false, null, null,
            FetchResponse.of(Errors.NONE, 0, 0, data, List.of()));
        handleFetchSuccess(answer.node(), answer.asked(), response);
    }

    /** The records that the client asks for next; it has one request of a partition under way. */
    private MemoryRecords batch(TopicPartition partition, int records) {
        SimpleRecord[] all = Stream.generate(() -> new SimpleRecord(new byte[0])).limit(records).toArray(SimpleRecord[]::new);
        long offset = subscriptions.position(partition).offset;
        return records == 0 ? MemoryRecords.EMPTY : MemoryRecords.withRecords(offset, Compression.NONE, all);
    }
}
