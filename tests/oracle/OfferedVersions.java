import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;

/**
 * The versions of each API in each of these kafka-clients.jar: a line a jar, `key:stable:newest ...`, where a broker offers up
 * to `stable`, and up to `newest` only where unstable versions are switched on; -1 for none.
 */
public class OfferedVersions {
    public static void main(String[] args) throws Exception {
        URL logging = org.slf4j.Logger.class.getProtectionDomain().getCodeSource().getLocation();
        for (String jar : args) {
            URL[] classpath = {Path.of(jar).toUri().toURL(), logging};
            try (URLClassLoader loader = new URLClassLoader(classpath, ClassLoader.getPlatformClassLoader())) {
                StringBuilder line = new StringBuilder();
                for (Object key : loader.loadClass("org.apache.kafka.common.protocol.ApiKeys").getEnumConstants()) {
                    line.append(key.getClass().getField("id").get(key)).append(':').append(versions(key)).append(' ');
                }
                System.out.println(line);
            }
        }
    }

    static String versions(Object key) throws Exception {
        Object newest = key.getClass().getMethod("latestVersion").invoke(key);
        for (Method method : key.getClass().getMethods()) { // since 3.5; before, no version was unstable
            if (method.getName().equals("latestVersion") && method.getParameterCount() == 1) {
                return method.invoke(key, false) + ":" + newest;
            }
        }
        return newest + ":" + newest;
    }
}
