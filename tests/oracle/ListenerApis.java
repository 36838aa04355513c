import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;

/**
 * The APIs that brokers of each of these kafka-clients.jar offer: a line a jar, the keys by kind of broker,
 * `ZK_BROKER:0,1,... BROKER:0,1,...`, where a BROKER is one of KRaft.
 */
public class ListenerApis {
    public static void main(String[] args) throws Exception {
        URL logging = org.slf4j.Logger.class.getProtectionDomain().getCodeSource().getLocation();
        for (String jar : args) {
            URL[] classpath = {Path.of(jar).toUri().toURL(), logging};
            try (URLClassLoader loader = new URLClassLoader(classpath, ClassLoader.getPlatformClassLoader())) {
                Class<?> apis = loader.loadClass("org.apache.kafka.common.protocol.ApiKeys");
                Class<?> kinds = loader.loadClass("org.apache.kafka.common.message.ApiMessageType$ListenerType");
                for (Object kind : kinds.getEnumConstants()) {
                    if (kind.toString().endsWith("BROKER")) {
                        Object offered = apis.getMethod("apisForListener", kinds).invoke(null, kind);
                        String keys = StreamSupport.stream(((Iterable<?>) offered).spliterator(), false)
                            .map(ListenerApis::id).collect(Collectors.joining(","));
                        System.out.print(kind + ":" + keys + " ");
                    }
                }
                System.out.println();
            }
        }
    }

    static String id(Object api) {
        try {
            return api.getClass().getField("id").get(api).toString();
        } catch (ReflectiveOperationException absent) {
            throw new IllegalStateException(absent);
        }
    }
}
