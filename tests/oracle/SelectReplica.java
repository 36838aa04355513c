// Each line of stdin is a partition and a consumer, each line printed the node id that Kafka's own
// RackAwareReplicaSelector selects.
//   RACK LEADER REPLICA...   RACK of the consumer, `-` for none; LEADER its node id
// REPLICA: ID/RACK/LOG_END_OFFSET/TIME_SINCE_LAST_CAUGHT_UP_MS of each replica in sync, the leader among them; RACK `-`
// for none. They are what ReplicaManager.findPreferredReadReplica hands on.
import java.net.InetAddress;
import java.util.*;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.replica.*;
import org.apache.kafka.common.security.auth.KafkaPrincipal;

public class SelectReplica {
    static String rack(String word) {
        return word.equals("-") ? null : word;
    }

    static ReplicaView replica(String[] parts) {
        Node node = new Node(Integer.parseInt(parts[0]), "host", 9092, rack(parts[1]));
        return new ReplicaView.DefaultReplicaView(node, Long.parseLong(parts[2]), Long.parseLong(parts[3]));
    }

    public static void main(String[] args) throws Exception {
        ReplicaSelector selector = new RackAwareReplicaSelector();
        Scanner lines = new Scanner(System.in);
        StringBuilder out = new StringBuilder();
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            Set<ReplicaView> replicas = new HashSet<>();
            ReplicaView leader = null;
            for (String word : Arrays.copyOfRange(words, 2, words.length)) {
                ReplicaView one = replica(word.split("/"));
                replicas.add(one);
                leader = one.endpoint().id() == Integer.parseInt(words[1]) ? one : leader;
            }
            String stated = words[0].equals("-") ? "" : words[0];
            ClientMetadata client = new ClientMetadata.DefaultClientMetadata(
                stated, "app", InetAddress.getLoopbackAddress(), KafkaPrincipal.ANONYMOUS, "PLAINTEXT");
            PartitionView partition = new PartitionView.DefaultPartitionView(replicas, leader);
            Optional<ReplicaView> selected = selector.select(new TopicPartition("t", 0), client, partition);
            out.append(selected.get().endpoint().id()).append('\n');
        }
        System.out.print(out);
    }
}
