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
                    Object id = key.getClass().getField("id").get(key);
                    line.append(id).append(':').append(versions(loader, key, id)).append(' ');
                }
                System.out.println(line);
            }
        }
    }

    static String versions(ClassLoader loader, Object key, Object id) throws Exception {
        Object newest = newest(loader, key, id);
        for (Method method : key.getClass().getMethods()) { // since 3.5; before, no version was unstable
            if (method.getName().equals("latestVersion") && method.getParameterCount() == 1) {
                return method.invoke(key, false) + ":" + newest;
            }
        }
        return newest + ":" + newest;
    }

    static Object newest(ClassLoader loader, Object key, Object id) throws Exception {
        try {
            return key.getClass().getMethod("latestVersion").invoke(key);
        } catch (NoSuchMethodException before011) {
            Class<?> all = loader.loadClass("org.apache.kafka.common.protocol.ProtoUtils");
            return all.getMethod("latestVersion", int.class).invoke(null, ((Short) id).intValue());
        }
    }
}
