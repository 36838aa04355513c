import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;

/**
 * Writes message sets of formats 0 and 1 with MemoryRecordsBuilder, and reads them again.
 * Each line: MAGIC CODEC (its number) LOG_APPEND_TIME (-1 for create time), then OFFSET:TIMESTAMP:KEY:VALUE of each message, key
 * (-1 for none) and value being lengths. Prints the set in hex, then of each of its batches, behind a bar: size, first offset,
 * last offset, messages, timestamp of the first, maxTimestamp, and bytes of the messages as they are without compression.
 */
public class MessageSets {
    /** A class that Kafka 4.2 moved. */
    static Class<?> moved(String name) throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.record.internal." + name);
        } catch (ClassNotFoundException absent) {
            return Class.forName("org.apache.kafka.common.record." + name);
        }
    }

    static Object call(Object target, String name) throws Exception {
        for (Class<?> type = target.getClass(); ; type = type.getSuperclass()) {
            try {
                Method method = type.getMethod(name);
                method.setAccessible(true);
                return method.invoke(target);
            } catch (NoSuchMethodException absent) {
                if (type.getSuperclass() == null) {
                    throw absent;
                }
            }
        }
    }

    /** Content that codecs can make smaller, and not only zeros. */
    static byte[] bytes(int length, int seed) {
        if (length < 0) {
            return null;
        }
        byte[] made = new byte[length];
        for (int at = 0; at < length; at++) {
            made[at] = (byte) ((at * 31 + seed) % 23);
        }
        return made;
    }

    public static void main(String[] args) throws Exception {
        Class<?> records = moved("MemoryRecords"), times = timestampType(), simple = moved("SimpleRecord");
        Constructor<?> record = simple.getConstructor(long.class, byte[].class, byte[].class);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            byte magic = Byte.parseByte(words[0]);
            long appended = Long.parseLong(words[2]);
            Object type = times.getField(magic == 0 ? "NO_TIMESTAMP_TYPE" : appended < 0 ? "CREATE_TIME" : "LOG_APPEND_TIME").get(null);
            Compression codec = switch (words[1]) {
                case "0" -> Compression.NONE;
                case "1" -> Compression.gzip().build();
                case "2" -> Compression.snappy().build();
                default -> Compression.lz4().build();
            };
            Object builder = records.getMethod("builder", ByteBuffer.class, byte.class, Compression.class, times, long.class, long.class)
                .invoke(null, ByteBuffer.allocate(64), magic, codec, type, Long.parseLong(words[3].split(":")[0]), appended);
            for (int at = 3; at < words.length; at++) {
                String[] parts = words[at].split(":");
                byte[] key = bytes(Integer.parseInt(parts[2]), at), value = bytes(Integer.parseInt(parts[3]), at + 7);
                builder.getClass().getMethod("appendWithOffset", long.class, simple)
                    .invoke(builder, Long.parseLong(parts[0]), record.newInstance(Long.parseLong(parts[1]), key, value));
            }
            Object set = call(builder, "build");
            ByteBuffer buffer = ((ByteBuffer) call(set, "buffer")).duplicate();
            byte[] raw = new byte[buffer.remaining()];
            buffer.get(raw);
            System.out.println(HexFormat.of().formatHex(raw) + batches(set));
        }
    }

    static Class<?> timestampType() throws ClassNotFoundException {
        return Class.forName("org.apache.kafka.common.record.TimestampType");
    }

    static String batches(Object set) throws Exception {
        StringBuilder told = new StringBuilder();
        for (Object batch : (Iterable<?>) call(set, "batches")) {
            long messages = 0, first = -1, last = -1, time = -1, bytes = 0;
            for (Object message : (Iterable<?>) batch) {
                last = (long) call(message, "offset");
                if (messages++ == 0) {
                    first = last;
                    time = (long) call(message, "timestamp");
                }
                bytes += (int) call(message, "sizeInBytes");
            }
            told.append('|').append(call(batch, "sizeInBytes")).append(' ').append(first).append(' ').append(last).append(' ')
                .append(messages).append(' ').append(time).append(' ').append(call(batch, "maxTimestamp")).append(' ').append(bytes);
        }
        return told.toString();
    }
}
