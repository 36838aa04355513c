import java.util.Map;
import org.apache.kafka.server.config.DynamicBrokerConfig;

/** Prints how each of the named settings of a broker can be changed, in Kafka's own words. */
public class UpdateModes {
    public static void main(String[] names) {
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        for (String name : names) {
            System.out.println(modes.getOrDefault(name, "read-only"));
        }
    }
}
