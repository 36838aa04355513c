import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import java.util.zip.CRC32C;

/** For each line of hex: its CRC-32C by the JDK, as Kafka computes it. */
public class Crc32cOfLines {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            CRC32C crc = new CRC32C();
            crc.update(HexFormat.of().parseHex(line));
            System.out.println(crc.getValue());
        }
    }
}
