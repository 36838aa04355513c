import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.FetchResponse;

/** Prints the size of responses by how many partitions they have, with 20 KiB of records each, as brokers count it. */
public class FetchResponseSizes {
    public static void main(String[] args) {
        Uuid topic = Uuid.randomUuid();
        for (int count : new int[] {0, 1, 2, 7}) {
            Map<TopicIdPartition, FetchResponseData.PartitionData> partitions = new LinkedHashMap<>();
            for (int i = 0; i < count; i++) {
                partitions.put(new TopicIdPartition(topic, i, "topic"), new FetchResponseData.PartitionData()
                    .setPartitionIndex(i)
                    .setRecords(MemoryRecords.readableRecords(ByteBuffer.allocate(20 * 1024))));
            }
            System.out.println(count + " " + FetchResponse.sizeOf((short) 18, partitions.entrySet().iterator()));
        }
    }
}
