import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Optional;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/** Records responses or requests with a broker's own quota manager, and says how long each makes its client wait. */
public class QuotaMeters {
    private static ClientQuotaManager manager;
    private static Session session;

    /**
     * Lines `quota RATE WINDOWS SECONDS` begin anew, and print the most that a response may have; lines `BYTES TIME`
     * are responses to fetches, lines `produce BYTES TIME` produce requests, and print throttle_time_ms.
     */
    public static void main(String[] args) throws IOException, InterruptedException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        session = new Session(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, "user"), null);
        StringBuilder told = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("quota")) {
                begin(Double.parseDouble(words[1]), Integer.parseInt(words[2]), Integer.parseInt(words[3]));
                told.append((int) manager.maxValueInQuotaWindow(session, "client")).append('\n');
            } else if (words[0].equals("produce")) {
                told.append(produced(Double.parseDouble(words[1]), Long.parseLong(words[2]))).append('\n');
            } else {
                told.append(throttled(Double.parseDouble(words[0]), Long.parseLong(words[1]))).append('\n');
            }
        }
        System.out.print(told);
        System.out.flush();
        System.exit(0);
    }

    private static void begin(double rate, int windows, int seconds) throws InterruptedException {
        if (manager != null) {
            manager.shutdown();
        }
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(windows, seconds);
        manager = new ClientQuotaManager(config, new Metrics(), QuotaType.FETCH, Time.SYSTEM, "");
        manager.updateQuota(
            Optional.empty(), Optional.of(new ClientQuotaManager.ClientIdEntity("client")),
            Optional.of(Quota.upperBound(rate)));
    }

    /** As KafkaApis.handleProduceRequest does it. */
    private static int produced(double bytes, long time) {
        return manager.maybeRecordAndGetThrottleTimeMs(session, "client", bytes, time);
    }

    /** As KafkaApis.handleFetchRequest does it. */
    private static int throttled(double bytes, long time) {
        int ms = manager.maybeRecordAndGetThrottleTimeMs(session, "client", bytes, time);
        if (ms > 0) {
            manager.unrecordQuotaSensor(session, "client", bytes, time);
        }
        return ms;
    }
}
