import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.SimpleRecord;

/**
 * What batches take. Lines in: `CODEC HEX...` or `CODEC:LEVEL HEX...`, the values of a batch's records, a ms apart. Lines out: bytes
 * of the batch.
 */
public class CompressedBatches {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) {
            String[] words = line.split(" ");
            SimpleRecord[] records = new SimpleRecord[words.length - 1];
            for (int i = 0; i < records.length; i++)
                records[i] = new SimpleRecord(1000L + i, null, HexFormat.of().parseHex(words[i + 1]));
            System.out.println(MemoryRecords.withRecords(compression(words[0].split(":")), records).sizeInBytes());
        }
    }

    static Compression compression(String[] codec) {
        if (codec.length == 1)
            return Compression.of(codec[0]).build();
        int level = Integer.parseInt(codec[1]);
        return switch (codec[0]) {
            case "gzip" -> Compression.gzip().level(level).build();
            case "lz4" -> Compression.lz4().level(level).build();
            default -> Compression.zstd().level(level).build();
        };
    }
}
