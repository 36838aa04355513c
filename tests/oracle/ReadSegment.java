import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogSegment;

/**
 * Each line: the lengths of values, one a batch of one record, then after a bar OFFSET MAX_SIZE MIN_ONE (0 or 1) of a read.
 * Prints the batches' sizes, a bar, the bytes that LogSegment.read returns, and 1 where the first batch is incomplete.
 */
public class ReadSegment {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\\|");
            File folder = Files.createTempDirectory("segment").toFile();
            LogSegment segment = LogSegment.open(folder, 0L, new LogConfig(new Properties()), Time.SYSTEM, false, 0, false, "");
            StringBuilder sizes = new StringBuilder();
            long offset = 0;
            for (String length : parts[0].trim().split(" ")) {
                MemoryRecords batch = MemoryRecords.withRecords(
                    offset, Compression.NONE, 0, new SimpleRecord(0L, null, new byte[Integer.parseInt(length)]));
                segment.append(offset, batch);
                offset += 1;
                sizes.append(batch.sizeInBytes()).append(' ');
            }
            String[] asked = parts[1].trim().split(" ");
            FetchDataInfo read = segment.read(
                Long.parseLong(asked[0]), Integer.parseInt(asked[1]), Optional.of((long) segment.size()), asked[2].equals("1"));
            int found = read == null ? 0 : read.records.sizeInBytes();
            int incomplete = read != null && read.firstEntryIncomplete ? 1 : 0;
            System.out.println(sizes + "|" + found + " " + incomplete);
            segment.close();
            for (File file : folder.listFiles()) {
                file.delete();
            }
            folder.delete();
        }
    }
}
