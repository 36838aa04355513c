import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.server.FetchContext;
import org.apache.kafka.server.FetchManager;

/**
 * Kafka's own cache of fetch sessions. In each of `rounds` rounds, each of `clients` clients fetches its `partitions`
 * partitions, of which one has another high watermark than before. Prints the CPU time of each repetition, in ns, over
 * all threads of the process.
 */
public class FetchSessionEvents {
    static final OperatingSystemMXBean PROCESS = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    static final Uuid ID = new Uuid(7, 7);
    static final Map<Uuid, String> NAMES = Map.of(ID, "orders");

    public static void main(String[] args) {
        int clients = Integer.parseInt(args[0]), partitions = Integer.parseInt(args[1]);
        int rounds = Integer.parseInt(args[2]), slots = Integer.parseInt(args[3]), repetitions = Integer.parseInt(args[4]);
        for (int i = 0; i < repetitions; i++) {
            long start = PROCESS.getProcessCpuTime();
            run(clients, partitions, rounds, slots);
            System.out.println(PROCESS.getProcessCpuTime() - start);
        }
    }

    static void run(int clients, int partitions, int rounds, int slots) {
        SessionClock clock = new SessionClock();
        FetchManager manager = FetchSessions.broker(clock, slots, 120_000, 8);
        TopicIdPartition[] parts = new TopicIdPartition[partitions];
        for (int p = 0; p < partitions; p++) parts[p] = new TopicIdPartition(ID, new TopicPartition("orders", p));
        int[] id = new int[clients], epoch = new int[clients];
        for (int round = 0; round < rounds; round++) {
            for (int c = 0; c < clients; c++) {
                clock.ms++;
                Map<TopicIdPartition, FetchRequest.PartitionData> wanted = new LinkedHashMap<>();
                if (epoch[c] == 0) {
                    for (TopicIdPartition tp : parts) wanted.put(tp, new FetchRequest.PartitionData(ID, 0, -1, 1, Optional.empty()));
                }
                FetchContext context = manager.newContext((short) 18, new FetchMetadata(id[c], epoch[c]), false, wanted, List.of(), NAMES);
                LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> given = new LinkedHashMap<>();
                int moved = round % partitions;
                for (int p = 0; p < partitions; p++) {
                    long highWatermark = round / partitions + (p <= moved ? 1 : 0);
                    given.put(parts[p], new FetchResponseData.PartitionData().setPartitionIndex(p)
                        .setHighWatermark(highWatermark).setLogStartOffset(0).setRecords(MemoryRecords.EMPTY));
                }
                FetchResponse response = context.updateAndGenerateResponseData(given, List.of());
                if (response.error().code() != 0) throw new IllegalStateException(response.error().toString());
                id[c] = response.sessionId();
                epoch[c] = id[c] == 0 ? 0 : epoch[c] + 1;
            }
        }
    }
}
