import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import kafka.server.FetchContext;
import kafka.server.FetchManager;
import kafka.server.FetchSessionCache;
import org.apache.kafka.clients.FetchSessionHandler;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Records;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.utils.LogContext;
import scala.runtime.BoxedUnit;

/** Kafka's own fetch sessions before KAFKA-9137, with the clients of their time, as in kafka_2.12 2.4. */
public class FetchSessionsOf24 implements SessionLoop.Release {
    private final SessionClock clock = new SessionClock();
    private final Map<String, FetchSessionHandler> clients = new HashMap<>();
    private FetchManager manager;

    public static void main(String[] args) throws Exception { SessionLoop.run(new FetchSessionsOf24()); }

    @Override public void begin(int slots, long evictionMs, int shards) {
        manager = new FetchManager(clock, new FetchSessionCache(slots, evictionMs));
        clients.clear();
    }

    @Override public SessionLoop.Exchange exchange(SessionLoop.Fetch fetch, SessionLoop.Act act) {
        clock.ms = fetch.ms();
        if (act == SessionLoop.Act.BEGIN_ANEW) clients.remove(fetch.client());
        FetchSessionHandler client = clients.computeIfAbsent(fetch.client(), name -> new FetchSessionHandler(new LogContext(), 1));
        if (act == SessionLoop.Act.NETWORK_ERROR) client.handleError(new RuntimeException());
        if (act == SessionLoop.Act.CLOSE) throw new IllegalArgumentException("these clients do not close their sessions");
        FetchSessionHandler.Builder builder = client.newBuilder();
        fetch.wanted().forEach((tp, part) -> builder.add(tp, new FetchRequest.PartitionData(part.offset(), -1, 1000, Optional.empty())));
        FetchSessionHandler.FetchRequestData built = builder.build();
        if (built.toSend().isEmpty() && built.toForget().isEmpty() && fetch.wanted().isEmpty()) return null; // as AbstractFetcherThread
        FetchMetadata metadata = built.metadata();
        if (act == SessionLoop.Act.WRONG_EPOCH && metadata.epoch() > 0) {
            metadata = new FetchMetadata(metadata.sessionId(), metadata.epoch() + 5);
        }
        List<TopicPartition> order = new ArrayList<>();
        FetchResponse<Records> response = answer(fetch, metadata, built, order);
        client.handleResponse(response);
        return new SessionLoop.Exchange(metadata.sessionId(), metadata.epoch(), response.error().code(), response.sessionId(), -1, -1,
            built.toSend().keySet(), built.toForget(), response.responseData().keySet(), order);
    }

    private FetchResponse<Records> answer(SessionLoop.Fetch fetch, FetchMetadata metadata, FetchSessionHandler.FetchRequestData built, List<TopicPartition> order) {
        FetchContext context = manager.newContext(metadata, built.toSend(), built.toForget(), fetch.privileged());
        context.foreachPartition((tp, data) -> {
            order.add(tp);
            return BoxedUnit.UNIT;
        });
        LinkedHashMap<TopicPartition, FetchResponse.PartitionData<Records>> fine = new LinkedHashMap<>(), wrong = new LinkedHashMap<>();
        for (TopicPartition tp : order) {
            SessionLoop.Part part = fetch.wanted().get(tp);
            Errors error = Errors.forCode(part.error());
            (error == Errors.NONE ? fine : wrong).put(tp, new FetchResponse.PartitionData<>(error, part.highWatermark(), -1, part.logStart(),
                List.of(), MemoryRecords.readableRecords(ByteBuffer.allocate(part.recordBytes()))));
        }
        fine.putAll(wrong);
        return fetch.throttled() ? context.getThrottledResponse(100) : context.updateAndGenerateResponseData(fine);
    }
}
