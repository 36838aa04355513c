import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.kafka.clients.FetchSessionHandler;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.utils.LogContext;

/** Kafka's clients since topics have ids (3.1), for the broker of a release. */
public abstract class SessionClients implements SessionLoop.Release {
    /** A broker's answer, and the partitions in the order in which it read them. */
    protected record Answer(FetchResponse response, Collection<TopicPartition> read) { }

    private static final int MAX_BYTES = 1000;
    private static final Map<Uuid, String> NAMES = Map.of(id("a"), "a", id("b"), "b", id("c"), "c");
    private final Map<String, FetchSessionHandler> clients = new HashMap<>();

    private static Uuid id(String topic) { return new Uuid(7, topic.hashCode()); }

    protected abstract Answer answer(SessionLoop.Fetch fetch, FetchMetadata metadata,
        Map<TopicIdPartition, FetchRequest.PartitionData> listed, List<TopicIdPartition> forgotten, Map<Uuid, String> names);

    protected abstract void newBroker(int slots, long evictionMs, int shards);

    @Override public void begin(int slots, long evictionMs, int shards) {
        clients.clear();
        newBroker(slots, evictionMs, shards);
    }

    @Override public SessionLoop.Exchange exchange(SessionLoop.Fetch fetch, SessionLoop.Act act) {
        if (act == SessionLoop.Act.BEGIN_ANEW) clients.remove(fetch.client());
        FetchSessionHandler client = clients.computeIfAbsent(fetch.client(), name -> new FetchSessionHandler(new LogContext(), 1));
        if (act == SessionLoop.Act.NETWORK_ERROR) client.handleError(new RuntimeException());
        if (act == SessionLoop.Act.CLOSE) client.notifyClose();
        FetchSessionHandler.FetchRequestData built = built(client, fetch);
        if (built.toSend().isEmpty() && built.toForget().isEmpty() && fetch.wanted().isEmpty()) return null; // as AbstractFetcherThread
        FetchMetadata metadata = built.metadata();
        if (act == SessionLoop.Act.WRONG_EPOCH && metadata.epoch() > 0) {
            metadata = new FetchMetadata(metadata.sessionId(), metadata.epoch() + 5);
        }
        Map<TopicIdPartition, FetchRequest.PartitionData> listed = new LinkedHashMap<>();
        built.toSend().forEach((tp, data) -> listed.put(new TopicIdPartition(data.topicId, tp), data));
        Answer answer = answer(fetch, metadata, listed, built.toForget(), fetch.version() >= 13 ? NAMES : Map.of());
        client.handleResponse(answer.response(), fetch.version());
        return told(fetch, metadata, built, answer);
    }

    private static FetchSessionHandler.FetchRequestData built(FetchSessionHandler client, SessionLoop.Fetch fetch) {
        FetchSessionHandler.Builder builder = client.newBuilder();
        fetch.wanted().forEach((tp, part) -> {
            Uuid topicId = fetch.version() >= 13 ? id(tp.topic()) : Uuid.ZERO_UUID;
            builder.add(tp, new FetchRequest.PartitionData(topicId, part.offset(), -1, MAX_BYTES, Optional.empty()));
        });
        return builder.build();
    }

    private static SessionLoop.Exchange told(SessionLoop.Fetch fetch, FetchMetadata metadata, FetchSessionHandler.FetchRequestData built, Answer answer) {
        short version = fetch.version();
        FetchRequest request = FetchRequest.Builder.forConsumer(version, 500, 1, built.toSend())
            .metadata(metadata).removed(built.toForget()).replaced(built.toReplace()).build(version);
        FetchResponse response = answer.response();
        List<TopicPartition> returned = response.data().responses().stream().flatMap(topic -> topic.partitions().stream().map(p ->
            new TopicPartition(version >= 13 ? NAMES.get(topic.topicId()) : topic.topic(), p.partitionIndex()))).collect(Collectors.toList());
        return new SessionLoop.Exchange(metadata.sessionId(), metadata.epoch(), response.error().code(), response.sessionId(),
            request.data().size(new ObjectSerializationCache(), version), response.data().size(new ObjectSerializationCache(), version),
            built.toSend().keySet(), built.toForget().stream().map(TopicIdPartition::topicPartition).collect(Collectors.toList()),
            returned, answer.read());
    }

    /** What a broker reads: partitions in its order, those with errors last. */
    protected static LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> data(SessionLoop.Fetch fetch, Iterable<TopicIdPartition> order) {
        LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> fine = new LinkedHashMap<>(), wrong = new LinkedHashMap<>();
        for (TopicIdPartition tp : order) {
            SessionLoop.Part part = fetch.wanted().get(tp.topicPartition());
            if (part.error() != 0) {
                wrong.put(tp, FetchResponse.partitionResponse(tp.partition(), Errors.forCode(part.error())));
            } else {
                fine.put(tp, new FetchResponseData.PartitionData().setPartitionIndex(tp.partition())
                    .setHighWatermark(part.highWatermark()).setLogStartOffset(part.logStart()));
            }
        }
        fine.putAll(wrong);
        return fine;
    }
}
