import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.clients.consumer.internals.ShareFetchConfig;
import org.apache.kafka.clients.consumer.internals.ShareSessionHandler;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ShareAcknowledgeResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ShareAcknowledgeRequest;
import org.apache.kafka.common.requests.ShareAcknowledgeResponse;
import org.apache.kafka.common.requests.ShareFetchRequest;
import org.apache.kafka.common.requests.ShareFetchResponse;
import org.apache.kafka.common.requests.ShareRequestMetadata;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.share.session.ShareSessionCache;

/**
 * Kafka's own cache of share sessions, and its clients in closed loop with it (kafka-server, kafka_2.13, kafka-clients).
 *
 * A line `begin LIMIT` begins a broker. Then a line an event: `fetch GROUP MEMBER CONNECTION`, `acknowledge ...`,
 * `anew ...` (a fetch after a network error), `wrong ...` (a fetch with an epoch that no rule gives), `close ...` (the
 * request that closes a session), `release ...` (its response), `end CONNECTION`. For each, a line: `EPOCH ERROR SIZE`
 * of a request, `skip SIZE` of one that the client does not send, `- SIZE` else.
 */
public class ShareSessions {
    private static final ShareFetchConfig CONFIG = new ShareFetchConfig(1, 1000, 0, 1000, 10, false, "",
        IsolationLevel.READ_UNCOMMITTED, ShareAcquireMode.BATCH_OPTIMIZED);
    private static final short VERSION = 2;
    private final ShareSessionCache cache;
    private final kafka.server.share.SharePartitionManager manager;
    private final Map<String, ShareSessionHandler> clients = new HashMap<>();
    private final Map<String, Uuid> ids = new HashMap<>();

    ShareSessions(int limit) {
        cache = new ShareSessionCache(limit);
        manager = new kafka.server.share.SharePartitionManager(null, Time.SYSTEM, cache, 30_000, 5, 2_000, 500, null, null, null);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        ShareSessions broker = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] word = line.split(" ");
            if (word[0].equals("begin")) {
                broker = new ShareSessions(Integer.parseInt(word[1]));
                continue;
            }
            out.append(broker.on(word)).append(' ').append(broker.cache.size()).append('\n');
        }
        System.out.print(out);
        System.out.flush();
        Runtime.getRuntime().halt(0);  // timers of the managers go on
    }

    private String on(String[] word) {
        if (word[0].equals("end")) {
            cache.connectionDisconnectListener().onDisconnect(word[1]);
            return "-";
        }
        String group = word[1], name = word[1] + "/" + word[2], connection = word[3];
        Uuid id = ids.computeIfAbsent(name, key -> Uuid.randomUuid());
        ShareSessionHandler client = clients.computeIfAbsent(name, key -> new ShareSessionHandler(new LogContext(), 1, id));
        switch (word[0]) {
            case "release": manager.releaseSession(group, id.toString()); return "-";
            case "wrong": return wrong(group, id, client, connection);
            case "acknowledge": return acknowledge(group, id, client);
            case "close": client.notifyClose(); return acknowledge(group, id, client);
            case "anew": client.handleError(new RuntimeException()); return fetch(group, id, client, connection);
            default: return fetch(group, id, client, connection);
        }
    }

    private Errors fetched(String group, Uuid id, int epoch, String connection) {
        try {
            manager.newContext(group, List.of(), List.of(), id.toString(), epoch, false, connection);
            return Errors.NONE;
        } catch (RuntimeException e) {
            return Errors.forException(e);
        }
    }

    private String fetch(String group, Uuid id, ShareSessionHandler client, String connection) {
        ShareFetchRequest request = client.newShareFetchBuilder(group, CONFIG, false).build(VERSION);
        return answer(client, request.data().shareSessionEpoch(), fetched(group, id, request.data().shareSessionEpoch(), connection));
    }

    private String wrong(String group, Uuid id, ShareSessionHandler client, String connection) {
        int epoch = cache.get(new org.apache.kafka.server.share.session.ShareSessionKey(group, id.toString())) == null ? 1
            : ShareRequestMetadata.nextEpoch(cache.get(new org.apache.kafka.server.share.session.ShareSessionKey(group, id.toString())).epoch());
        return answer(client, epoch, fetched(group, id, epoch, connection));
    }

    private String answer(ShareSessionHandler client, int epoch, Errors error) {
        client.handleResponse(ShareFetchResponse.of(error, 0, new LinkedHashMap<>(), List.of(), 0), VERSION);
        return epoch + " " + error.code();
    }

    private String acknowledge(String group, Uuid id, ShareSessionHandler client) {
        ShareAcknowledgeRequest.Builder builder = client.newShareAcknowledgeBuilder(group);
        if (builder == null) return "skip";
        int epoch = builder.build(VERSION).data().shareSessionEpoch();
        Errors error = Errors.NONE;
        try {
            manager.acknowledgeSessionUpdate(group, id.toString(), epoch);
        } catch (RuntimeException e) {
            error = Errors.forException(e);
        }
        client.handleResponse(new ShareAcknowledgeResponse(new ShareAcknowledgeResponseData().setErrorCode(error.code())), VERSION);
        return epoch + " " + error.code();
    }
}
