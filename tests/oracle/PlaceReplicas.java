// Each line of stdin asks for a placement, each line printed is the answer: "1,2,3 2,3,1", one word a partition, or the
// exception's simple name.
//   striped SEED PARTITIONS FACTOR BROKERS   SEED of java.util.Random, or `mock` for Kafka's MockRandom
//   admin START FIRST PARTITIONS FACTOR BROKERS
// BROKERS: ID[f]/RACK or ID[f]/- each, `f` for a fenced one. AdminUtils is looked up by name: newer releases lack it.
import java.util.*;
import java.util.stream.*;

public class PlaceReplicas {
    static class MockRandom extends Random {
        private long state = 17;
        @Override protected int next(int bits) {
            state = (state * 2862933555777941757L) + 3037000493L;
            return (int) (state >>> (64 - bits));
        }
    }

    record Broker(int id, Optional<String> rack, boolean fenced) { }

    static List<Broker> brokers(String[] words, int from) {
        List<Broker> found = new ArrayList<>();
        for (String word : Arrays.copyOfRange(words, from, words.length)) {
            String[] parts = word.split("/", 2);
            boolean fenced = parts[0].endsWith("f");
            int id = Integer.parseInt(fenced ? parts[0].substring(0, parts[0].length() - 1) : parts[0]);
            found.add(new Broker(id, parts[1].equals("-") ? Optional.empty() : Optional.of(parts[1]), fenced));
        }
        return found;
    }

    static String told(List<List<Integer>> placed) {
        return placed.stream().map(replicas -> replicas.stream().map(String::valueOf).collect(Collectors.joining(",")))
            .collect(Collectors.joining(" "));
    }

    public static void main(String[] args) throws Exception {
        Placer placer = args[0].equals("striped") ? new Striped() : new Admin();
        Scanner lines = new Scanner(System.in);
        StringBuilder out = new StringBuilder();
        while (lines.hasNextLine()) {
            try {
                out.append(told(placer.place(lines.nextLine().split(" "))));
            } catch (java.lang.reflect.InvocationTargetException fault) {
                out.append(fault.getCause().getClass().getSimpleName());
            }
            out.append('\n');
        }
        System.out.print(out);
    }

    interface Placer {
        List<List<Integer>> place(String[] words) throws Exception;
    }

    /** org.apache.kafka.metadata.placement.StripedReplicaPlacer, by reflection so that one source serves both jars. */
    static class Striped implements Placer {
        final String in = "org.apache.kafka.metadata.placement.";

        public List<List<Integer>> place(String[] words) throws Exception {
            Random random = words[0].equals("mock") ? new MockRandom() : new Random(Long.parseLong(words[0]));
            Class<?> usable = Class.forName(in + "UsableBroker"), describer = Class.forName(in + "ClusterDescriber");
            List<Object> all = new ArrayList<>();
            for (Broker b : brokers(words, 3))
                all.add(usable.getConstructor(int.class, Optional.class, boolean.class).newInstance(b.id, b.rack, b.fenced));
            Object cluster = java.lang.reflect.Proxy.newProxyInstance(describer.getClassLoader(), new Class<?>[] {describer},
                (proxy, method, given) -> method.getName().equals("usableBrokers") ? all.iterator() : directory(method));
            Class<?> spec = Class.forName(in + "PlacementSpec"), striped = Class.forName(in + "StripedReplicaPlacer");
            Object asked = spec.getConstructor(int.class, int.class, short.class)
                .newInstance(0, Integer.parseInt(words[1]), Short.parseShort(words[2]));
            Object placed = striped.getMethod("place", spec, describer)
                .invoke(striped.getConstructor(Random.class).newInstance(random), asked, cluster);
            List<List<Integer>> found = new ArrayList<>();
            for (Object partition : (List<?>) placed.getClass().getMethod("assignments").invoke(placed))
                found.add((List<Integer>) partition.getClass().getMethod("replicas").invoke(partition));
            return found;
        }

        static Object directory(java.lang.reflect.Method method) throws Exception {
            return method.getReturnType().getField("ZERO_UUID").get(null);
        }
    }

    /** org.apache.kafka.admin.AdminUtils.assignReplicasToBrokers. */
    static class Admin implements Placer {
        public List<List<Integer>> place(String[] words) throws Exception {
            Class<?> metadata = Class.forName("org.apache.kafka.admin.BrokerMetadata");
            List<Object> all = new ArrayList<>();
            for (Broker b : brokers(words, 4))
                all.add(metadata.getConstructor(int.class, Optional.class).newInstance(b.id, b.rack));
            Map<Integer, List<Integer>> placed = (Map<Integer, List<Integer>>) Class.forName("org.apache.kafka.admin.AdminUtils")
                .getMethod("assignReplicasToBrokers", Collection.class, int.class, int.class, int.class, int.class)
                .invoke(null, all, Integer.parseInt(words[2]), Integer.parseInt(words[3]), Integer.parseInt(words[0]),
                    Integer.parseInt(words[1]));
            return new ArrayList<>(new TreeMap<>(placed).values());
        }
    }
}
