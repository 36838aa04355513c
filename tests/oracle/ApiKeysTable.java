import org.apache.kafka.common.protocol.ApiKeys;

/** Prints key, name, and the request and response header version of every version: "1 FETCH 0:1:0 1:1:0 ...". */
public class ApiKeysTable {
    public static void main(String[] args) {
        for (ApiKeys api : ApiKeys.values()) {
            StringBuilder line = new StringBuilder(api.id + " " + api.name());
            if (api.messageType.lowestSupportedVersion() <= api.messageType.highestSupportedVersion(true)) {
                for (short v = api.messageType.lowestSupportedVersion(); v <= api.messageType.highestSupportedVersion(true); v++) {
                    line.append(" ").append(v).append(":").append(api.requestHeaderVersion(v)).append(":").append(api.responseHeaderVersion(v));
                }
            }
            System.out.println(line);
        }
    }
}
