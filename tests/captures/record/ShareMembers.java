import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.config.ConfigResource;

/** Share consumers, and what they consume. */
public class ShareMembers {
    static Map<String, Object> conf(String... pairs) {
        Map<String, Object> of = new HashMap<>();
        of.put("bootstrap.servers", "127.0.0.1:29092,127.0.0.1:29093,127.0.0.1:29094");
        for (String pair : pairs) { String[] kv = pair.split("=", 2); of.put(kv[0], kv[1]); }
        return of;
    }

    public static void main(String[] a) throws Exception {
        String[] rest = Arrays.copyOfRange(a, Math.min(a.length, 4), a.length);
        switch (a[0]) {
            case "prepare" -> prepare(a[1].split(","), Integer.parseInt(a[2]), a[3].split(","));
            case "produce" -> produce(a[1].split(","), Integer.parseInt(a[2]), Integer.parseInt(a[3]), rest);
            case "members" -> members(a[1], Integer.parseInt(a[2]), Integer.parseInt(a[3]), rest);
        }
    }

    static void prepare(String[] topics, int partitions, String[] groups) throws Exception {
        try (Admin admin = Admin.create(conf())) {
            List<NewTopic> wanted = new ArrayList<>();
            for (String topic : topics) wanted.add(new NewTopic(topic, partitions, (short) 2));
            admin.createTopics(wanted).all().get();
            Map<ConfigResource, Collection<AlterConfigOp>> ops = new HashMap<>();
            for (String group : groups) ops.put(new ConfigResource(ConfigResource.Type.GROUP, group), List.of(
                new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET)));
            admin.incrementalAlterConfigs(ops).all().get();
        }
    }

    static void produce(String[] topics, int perSecond, int seconds, String[] more) throws Exception {
        Map<String, Object> of = conf(more);
        of.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        of.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(of)) {
            for (int i = 0; i < perSecond * seconds; i++) {
                producer.send(new ProducerRecord<>(topics[i % topics.length], new byte[60 + i * 37 % 600]));
                if (i % 10 == 0) Thread.sleep(10_000 / perSecond);
            }
        }
    }

    static void members(String group, int count, int seconds, String[] more) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            String name = "share-" + group + "-" + i;
            Thread thread = new Thread(() -> member(name, group, seconds, more));
            threads.add(thread);
            thread.start();
            Thread.sleep(700);
        }
        for (Thread thread : threads) thread.join();
    }

    static void member(String name, String group, int seconds, String[] more) {
        List<String> settings = new ArrayList<>(), own = new ArrayList<>();
        for (String pair : more) (pair.startsWith("_") ? own : settings).add(pair);
        String topics = "share-a,share-b"; int release = 0, pause = 0;
        for (String pair : own) {
            String[] kv = pair.split("=");
            if (kv[0].equals("_topics")) topics = kv[1];
            if (kv[0].equals("_release")) release = Integer.parseInt(kv[1]);
            if (kv[0].equals("_pause")) pause = Integer.parseInt(kv[1]);
        }
        Map<String, Object> of = conf(settings.toArray(new String[0]));
        of.put("group.id", group);
        of.put("client.id", name);
        of.put("share.acknowledgement.mode", "explicit");
        of.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        of.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        long until = System.currentTimeMillis() + 1000L * seconds, polled = 0;
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(of)) {
            consumer.subscribe(List.of(topics.split(",")));
            while (System.currentTimeMillis() < until) {
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(300))) {
                    polled++;
                    consumer.acknowledge(r, release > 0 && polled % release == 0 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                }
                if (pause > 0) Thread.sleep(pause);
            }
        } catch (Exception e) {
            System.out.println(name + " " + e);
        }
        System.out.println(name + " polled " + polled);
    }
}
