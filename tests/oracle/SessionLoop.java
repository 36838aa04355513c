import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;

/**
 * What clients want, and a release's own classes in closed loop on it.
 *
 * A line `slots evictionMs shards` begins a broker. Then a line a fetch: `ms client privileged version again act
 * throttled topic:partition:offset:highWatermark:logStart:recordBytes:error ...`, `again` being the version after an error
 * of the session. For each request that comes of it, a line: `fetch sessionId epoch error responseSessionId requestBytes
 * responseBytes listed forgotten returned read`, lists as topic:partition,..., bytes of the bodies or -1.
 */
public class SessionLoop {
    public enum Act {
        BY_RULES, BEGIN_ANEW, NETWORK_ERROR, CLOSE, WRONG_EPOCH, LATER;

        /** Whether the client asks again at once after an error of its session, as a consumer does. */
        boolean goesOn() { return this != WRONG_EPOCH && this != LATER; }
    }

    /** A partition as a fetch wants it, and what there is for it. */
    public record Part(TopicPartition tp, long offset, long highWatermark, long logStart, int recordBytes, short error) {
        static Part parse(String word) {
            String[] of = word.split(":");
            TopicPartition tp = new TopicPartition(of[0], Integer.parseInt(of[1]));
            return new Part(tp, Long.parseLong(of[2]), Long.parseLong(of[3]), Long.parseLong(of[4]),
                Integer.parseInt(of[5]), Short.parseShort(of[6]));
        }
    }

    public record Fetch(long ms, String client, boolean privileged, short version, short again, Act act, boolean throttled, Map<TopicPartition, Part> wanted) {
        static Fetch parse(String[] word) {
            Map<TopicPartition, Part> wanted = new LinkedHashMap<>();
            Arrays.stream(word).skip(7).map(Part::parse).forEach(part -> wanted.put(part.tp(), part));
            return new Fetch(Long.parseLong(word[0]), word[1], word[2].equals("1"), Short.parseShort(word[3]),
                Short.parseShort(word[4]), Act.values()[Integer.parseInt(word[5])], word[6].equals("1"), wanted);
        }

        Fetch afterError() { return new Fetch(ms, client, privileged, again, again, Act.BY_RULES, throttled, wanted); }
    }

    /** A request and its response. */
    public record Exchange(int sessionId, int epoch, short error, int responseSessionId, int requestBytes, int responseBytes,
            Collection<TopicPartition> listed, Collection<TopicPartition> forgotten, Collection<TopicPartition> returned,
            Collection<TopicPartition> read) {
        String line() {
            List<String> words = new ArrayList<>();
            for (int number : new int[] {sessionId, epoch, error, responseSessionId, requestBytes, responseBytes}) words.add("" + number);
            for (Collection<TopicPartition> list : List.of(listed, forgotten, returned, read)) {
                words.add(list.isEmpty() ? "-" : list.stream().map(tp -> tp.topic() + ":" + tp.partition()).collect(Collectors.joining(",")));
            }
            return String.join(" ", words);
        }
    }

    /** A release's broker and clients. */
    public interface Release {
        void begin(int slots, long evictionMs, int shards);

        /** The client's next request in this fetch, and the broker's answer to it; null where there is nothing to ask. */
        Exchange exchange(Fetch fetch, Act act);
    }

    public static void run(Release release) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        int number = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] word = line.split(" ");
            if (word.length == 3) {
                release.begin(Integer.parseInt(word[0]), Long.parseLong(word[1]), Integer.parseInt(word[2]));
                number = 0;
                continue;
            }
            Fetch fetch = Fetch.parse(word);
            boolean goesOn = fetch.act().goesOn();
            Exchange told;
            do {
                told = release.exchange(fetch, fetch.act());
                if (told == null) break;
                out.append(number).append(' ').append(told.line()).append('\n');
                fetch = fetch.afterError();
            } while (told.error() != 0 && goesOn);
            number++;
        }
        System.out.print(out);
    }

    private SessionLoop() { }
}
