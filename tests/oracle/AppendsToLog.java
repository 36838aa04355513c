import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * What a leader makes of a produced batch. Lines in: `COMPRESSION_TYPE MAX_MESSAGE_BYTES CODEC HEX...`, two settings of
 * the topic, and the batch's codec and values, a ms apart. Lines out: bytes as produced, bytes as stored or -1 where the
 * batch is too large, and the codec it is stored in.
 */
public class AppendsToLog {
    public static void main(String[] args) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) {
            System.out.println(appended(line.split(" "), scheduler));
        }
        scheduler.shutdown();
    }

    private static String appended(String[] words, KafkaScheduler scheduler) throws Exception {
        File folder = new File(Files.createTempDirectory("log").toFile(), "t-0");
        folder.mkdir();
        Properties settings = new Properties();
        settings.put("compression.type", words[0]);
        settings.put("max.message.bytes", words[1]);
        long now = System.currentTimeMillis();
        SimpleRecord[] records = new SimpleRecord[words.length - 3];
        for (int i = 0; i < records.length; i++)
            records[i] = new SimpleRecord(now + i, null, HexFormat.of().parseHex(words[i + 3]));
        MemoryRecords batch = MemoryRecords.withRecords(Compression.of(words[2]).build(), records);
        int produced = batch.sizeInBytes();
        UnifiedLog log = UnifiedLog.create(
            folder, new LogConfig(settings), 0L, 0L, scheduler, new BrokerTopicStats(), Time.SYSTEM, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1), true,
            Optional.empty());
        try {
            log.appendAsLeader(batch, 0);
            var stored = log.read(0L, Integer.MAX_VALUE, FetchIsolation.LOG_END, true).records;
            return produced + " " + stored.sizeInBytes() + " " + stored.batches().iterator().next().compressionType().name;
        } catch (RecordTooLargeException refused) {
            return produced + " -1 none";
        } finally {
            log.close();
            Utils.delete(folder.getParentFile());
        }
    }
}
