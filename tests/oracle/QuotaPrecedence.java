import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/** Asks a broker's own quota manager which quota a client of a user has, and whose meter counts it. */
public class QuotaPrecedence {
    private static ClientQuotaManager manager;

    /**
     * Lines `new` begin anew; `quota USER CLIENT RATE` sets one, where - is no part of it, and * its default; `of USER
     * CLIENT` print rate, user and client.id of the meter, with - for none.
     */
    public static void main(String[] args) throws IOException, InterruptedException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder said = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("new")) {
                begin();
            } else if (words[0].equals("quota")) {
                manager.updateQuota(user(words[1]), client(words[2]),
                    Optional.of(Quota.upperBound(Double.parseDouble(words[3]))));
            } else {
                said.append(own(words[1], words[2])).append('\n');
            }
        }
        System.out.print(said);
        System.out.flush();
        System.exit(0);
    }

    private static void begin() throws InterruptedException {
        if (manager != null) {
            manager.shutdown();
        }
        manager = new ClientQuotaManager(
            new ClientQuotaManagerConfig(11, 1), new Metrics(), QuotaType.FETCH, Time.SYSTEM, "");
    }

    private static String own(String user, String client) {
        Session session = new Session(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user), null);
        Quota quota = manager.quota(user, client);
        if (quota == null || quota.bound() >= Long.MAX_VALUE) {
            return "none - -";
        }
        Map<String, String> tags = manager.getOrCreateQuotaSensors(session, client).metricTags();
        return String.format("%d %s %s", (long) quota.bound(), named(tags.get("user")), named(tags.get("client-id")));
    }

    private static String named(String tag) {
        return tag == null || tag.isEmpty() ? "-" : tag;
    }

    private static Optional<ClientQuotaEntity.ConfigEntity> user(String word) {
        return switch (word) {
            case "-" -> Optional.empty();
            case "*" -> Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY);
            default -> Optional.of(new ClientQuotaManager.UserEntity(word));
        };
    }

    private static Optional<ClientQuotaEntity.ConfigEntity> client(String word) {
        return switch (word) {
            case "-" -> Optional.empty();
            case "*" -> Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
            default -> Optional.of(new ClientQuotaManager.ClientIdEntity(word));
        };
    }
}
