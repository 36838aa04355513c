import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.KafkaFuture;

/** Clients that request changes of topics at the times in a script, even if earlier requests have no answer yet.
 *  Arguments: bootstrap retry script...; each script is one client, whose client.id is the file's name. Its lines are
 *  MS KIND TOPIC=PARTITIONS..., where KIND is create, grow or delete. */
public class SeededAdmin {
    public static void main(String[] a) throws Exception {
        List<Thread> clients = Arrays.stream(a).skip(2).map(Path::of).map(script -> new Thread(() -> {
            try {
                run(a[0], Boolean.parseBoolean(a[1]), script);
            } catch (Exception e) {
                e.printStackTrace();
                System.exit(1);
            }
        })).toList();
        clients.forEach(Thread::start);
        for (Thread client : clients) client.join();
    }

    static void run(String bootstrap, boolean retry, Path script) throws Exception {
        Map<String, Object> conf = Map.of("bootstrap.servers", bootstrap, "client.id", script.getFileName().toString(),
            "default.api.timeout.ms", 600_000);
        List<KafkaFuture<Void>> answers = new ArrayList<>();
        try (Admin admin = Admin.create(conf)) {
            admin.describeCluster().nodes().get();
            long start = System.currentTimeMillis();
            for (String line : Files.readAllLines(script)) {
                String[] words = line.split(" ");
                Map<String, Integer> topics = Arrays.stream(words).skip(2).map(word -> word.split("=")).collect(
                    Collectors.toMap(pair -> pair[0], pair -> Integer.parseInt(pair[1]), (x, y) -> y, LinkedHashMap::new));
                Thread.sleep(Math.max(0, start + Long.parseLong(words[0]) - System.currentTimeMillis()));
                answers.add(switch (words[1]) {
                    case "create" -> admin.createTopics(
                        topics.entrySet().stream().map(e -> new NewTopic(e.getKey(), e.getValue(), (short) 1)).toList(),
                        new CreateTopicsOptions().retryOnQuotaViolation(retry)).all();
                    case "grow" -> admin.createPartitions(topics.entrySet().stream().collect(
                        Collectors.toMap(Map.Entry::getKey, e -> NewPartitions.increaseTo(e.getValue()))),
                        new CreatePartitionsOptions().retryOnQuotaViolation(retry)).all();
                    default -> admin.deleteTopics(topics.keySet(),
                        new DeleteTopicsOptions().retryOnQuotaViolation(retry)).all();
                });
            }
            for (KafkaFuture<Void> answer : answers) {
                try {
                    answer.get();
                } catch (ExecutionException e) {
                    // The capture tells what was refused.
                }
            }
        }
    }
}
