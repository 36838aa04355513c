import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import kafka.server.FetchContext;
import kafka.server.FetchManager;
import kafka.server.FetchSessionCache;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import scala.runtime.BoxedUnit;

/** Kafka's own fetch sessions in the one cache of 2.5 to 3.7, as in kafka_2.13 3.7. */
public class FetchSessionsOf37 extends SessionClients {
    private final SessionClock clock = new SessionClock();
    private FetchManager manager;

    public static void main(String[] args) throws Exception { SessionLoop.run(new FetchSessionsOf37()); }

    @Override protected void newBroker(int slots, long evictionMs, int shards) {
        manager = new FetchManager(clock, new FetchSessionCache(slots, evictionMs));
    }

    @Override protected Answer answer(SessionLoop.Fetch fetch, FetchMetadata metadata,
            Map<TopicIdPartition, FetchRequest.PartitionData> listed, List<TopicIdPartition> forgotten, Map<Uuid, String> names) {
        clock.ms = fetch.ms();
        FetchContext context = manager.newContext(fetch.version(), metadata, fetch.privileged(), listed, forgotten, names);
        List<TopicIdPartition> order = new ArrayList<>();
        context.foreachPartition((tp, data) -> {
            order.add(tp);
            return BoxedUnit.UNIT;
        });
        LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> data = data(fetch, order);
        data.forEach((tp, of) -> {
            if (of.errorCode() == 0) of.setRecords(MemoryRecords.readableRecords(ByteBuffer.allocate(fetch.wanted().get(tp.topicPartition()).recordBytes())));
        });
        return new Answer(fetch.throttled() ? context.getThrottledResponse(100) : context.updateAndGenerateResponseData(data),
            order.stream().map(TopicIdPartition::topicPartition).collect(Collectors.toList()));
    }
}
