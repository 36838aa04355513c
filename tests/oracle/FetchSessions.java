import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
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
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;
import org.apache.kafka.server.FetchContext;
import org.apache.kafka.server.FetchManager;
import org.apache.kafka.server.FetchSession.FetchSessionCache;
import org.apache.kafka.server.FetchSessionCacheShard;

/**
 * Kafka's own fetch sessions, clients and broker, in closed loop on what clients want.
 *
 * A line `slots evictionMs shards` begins a broker. Then a line a fetch: `ms client privileged version act throttled
 * topic:partition:offset:highWatermark:logStart:recordBytes:error ...` with act 0 for what the client's rules say, 1 for
 * one that begins anew, 2 for one after a network error, 3 for one that closes its session. For each request that comes
 * of it, a line: `fetch sessionId epoch error responseSessionId listed forgotten returned`, lists as topic:partition,...
 */
public class FetchSessions {
    static final class Clock implements Time {
        long ms;

        public long milliseconds() { return ms; }
        public long nanoseconds() { return ms * 1_000_000; }
        public long hiResClockMs() { return ms; }
        public void sleep(long millis) { ms += millis; }
        public void waitObject(Object o, java.util.function.Supplier<Boolean> until, long deadline) { throw new UnsupportedOperationException(); }
        public Timer timer(long timeout) { throw new UnsupportedOperationException(); }
    }

    static Clock clock = new Clock();
    static FetchManager manager;
    static Map<String, FetchSessionHandler> clients = new HashMap<>();

    static Uuid id(String topic) { return new Uuid(7, topic.hashCode()); }

    static String told(TopicPartition tp) { return tp.topic() + ":" + tp.partition(); }

    static String list(List<String> items) { return items.isEmpty() ? "-" : String.join(",", items); }

    static FetchManager broker(int slots, long evictionMs, int shards) {
        List<FetchSessionCacheShard> caches = new ArrayList<>();
        for (int i = 0; i < shards; i++) {
            caches.add(new FetchSessionCacheShard(slots / shards, evictionMs, Integer.MAX_VALUE / shards, i));
        }
        FetchSessionCache.COUNTER.set(0);
        return new FetchManager(clock, new FetchSessionCache(caches));
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        int fetch = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] part = line.split(" ");
            if (part.length == 3) {
                manager = broker(Integer.parseInt(part[0]), Long.parseLong(part[1]), Integer.parseInt(part[2]));
                clients.clear();
                fetch = 0;
            } else {
                fetch(fetch++, part, out);
            }
        }
        System.out.print(out);
    }

    static void fetch(int number, String[] part, StringBuilder out) {
        clock.ms = Long.parseLong(part[0]);
        int act = Integer.parseInt(part[4]);
        if (act == 1) clients.remove(part[1]);
        FetchSessionHandler client = clients.computeIfAbsent(part[1], n -> new FetchSessionHandler(new LogContext(), 1));
        if (act == 2) client.handleError(new RuntimeException());
        if (act == 3) client.notifyClose();
        boolean done = false;
        while (!done) done = request(number, part, client, out);
    }

    static boolean request(int number, String[] part, FetchSessionHandler client, StringBuilder out) {
        short version = Short.parseShort(part[3]);
        boolean useIds = version >= 13;
        Map<TopicPartition, long[]> wanted = new LinkedHashMap<>();
        Map<Uuid, String> names = new HashMap<>();
        FetchSessionHandler.Builder builder = client.newBuilder();
        for (String word : Arrays.asList(part).subList(6, part.length)) {
            String[] of = word.split(":");
            TopicPartition tp = new TopicPartition(of[0], Integer.parseInt(of[1]));
            long[] numbers = Arrays.stream(of).skip(2).mapToLong(Long::parseLong).toArray();
            wanted.put(tp, numbers);
            Uuid topicId = useIds ? id(tp.topic()) : Uuid.ZERO_UUID;
            names.put(id(tp.topic()), tp.topic());
            builder.add(tp, new FetchRequest.PartitionData(topicId, numbers[0], -1, 1000, Optional.empty()));
        }
        names.put(id("a"), "a");
        names.put(id("b"), "b");
        FetchSessionHandler.FetchRequestData built = builder.build();
        FetchMetadata metadata = built.metadata();
        Map<TopicIdPartition, FetchRequest.PartitionData> listed = new LinkedHashMap<>();
        built.toSend().forEach((tp, data) -> listed.put(new TopicIdPartition(data.topicId, tp), data));
        List<TopicIdPartition> forgotten = new ArrayList<>(built.toForget());
        FetchContext context = manager.newContext(version, metadata, part[2].equals("1"), listed, forgotten, useIds ? names : Map.of());
        FetchResponse response = part[5].equals("1") ? context.getThrottledResponse(100, List.of()) : answer(context, wanted);
        client.handleResponse(response, version);
        List<String> returned = response.data().responses().stream().flatMap(t -> t.partitions().stream().map(p ->
            (useIds ? names.get(t.topicId()) : t.topic()) + ":" + p.partitionIndex())).collect(Collectors.toList());
        out.append(number).append(' ').append(metadata.sessionId()).append(' ').append(metadata.epoch()).append(' ')
            .append(response.error().code()).append(' ').append(response.sessionId()).append(' ')
            .append(list(listed.keySet().stream().map(tp -> told(tp.topicPartition())).collect(Collectors.toList()))).append(' ')
            .append(list(forgotten.stream().map(tp -> told(tp.topicPartition())).collect(Collectors.toList()))).append(' ')
            .append(list(returned)).append('\n');
        return response.error() == Errors.NONE;
    }

    /** Partitions in the order in which the broker reads them, those with errors last. */
    static FetchResponse answer(FetchContext context, Map<TopicPartition, long[]> wanted) {
        LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> fine = new LinkedHashMap<>();
        LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> wrong = new LinkedHashMap<>();
        context.foreachPartition((tp, data) -> {
            long[] of = wanted.get(tp.topicPartition());
            FetchResponseData.PartitionData given = new FetchResponseData.PartitionData().setPartitionIndex(tp.partition());
            if (of[4] != 0) {
                wrong.put(tp, FetchResponse.partitionResponse(tp.partition(), Errors.forCode((short) of[4])));
            } else {
                fine.put(tp, given.setHighWatermark(of[1]).setLogStartOffset(of[2])
                    .setRecords(MemoryRecords.readableRecords(ByteBuffer.allocate((int) of[3]))));
            }
        });
        fine.putAll(wrong);
        return context.updateAndGenerateResponseData(fine, List.of());
    }
}
