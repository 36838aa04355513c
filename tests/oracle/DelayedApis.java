import org.apache.kafka.common.protocol.ApiKeys;

/** Prints the key of every API, with a + where a request's memory is held until the request is handled. */
public class DelayedApis {
    public static void main(String[] args) {
        for (ApiKeys api : ApiKeys.values())
            System.out.println(api.id + (api.requiresDelayedAllocation ? "+" : ""));
    }
}
