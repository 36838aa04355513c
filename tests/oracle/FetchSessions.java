import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.FetchContext;
import org.apache.kafka.server.FetchManager;
import org.apache.kafka.server.FetchSession.FetchSessionCache;
import org.apache.kafka.server.FetchSessionCacheShard;

/** Kafka's own fetch sessions since the cache has shards, as in kafka-server 4.3. */
public class FetchSessions extends SessionClients {
    private final SessionClock clock = new SessionClock();
    private FetchManager manager;

    public static void main(String[] args) throws Exception { SessionLoop.run(new FetchSessions()); }

    static FetchManager broker(Time clock, int slots, long evictionMs, int shards) {
        List<FetchSessionCacheShard> caches = new ArrayList<>();
        for (int i = 0; i < shards; i++) {
            caches.add(new FetchSessionCacheShard(slots / shards, evictionMs, Integer.MAX_VALUE / shards, i));
        }
        FetchSessionCache.COUNTER.set(0);
        return new FetchManager(clock, new FetchSessionCache(caches));
    }

    @Override protected void newBroker(int slots, long evictionMs, int shards) {
        manager = broker(clock, slots, evictionMs, shards);
    }

    @Override protected Answer answer(SessionLoop.Fetch fetch, FetchMetadata metadata,
            Map<TopicIdPartition, FetchRequest.PartitionData> listed, List<TopicIdPartition> forgotten, Map<Uuid, String> names) {
        clock.ms = fetch.ms();
        FetchContext context = manager.newContext(fetch.version(), metadata, fetch.privileged(), listed, forgotten, names);
        List<TopicIdPartition> order = new ArrayList<>();
        context.foreachPartition((tp, data) -> order.add(tp));
        LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> data = data(fetch, order);
        data.forEach((tp, of) -> {
            if (of.errorCode() == 0) of.setRecords(MemoryRecords.readableRecords(ByteBuffer.allocate(fetch.wanted().get(tp.topicPartition()).recordBytes())));
        });
        return new Answer(fetch.throttled() ? context.getThrottledResponse(100, List.of()) : context.updateAndGenerateResponseData(data, List.of()),
            order.stream().map(TopicIdPartition::topicPartition).collect(Collectors.toList()));
    }
}
