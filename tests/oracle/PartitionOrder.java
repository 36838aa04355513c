import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.internals.PartitionStates;

/** Each line: partitions, then after a bar those moved to the end one by one. Prints the order that PartitionStates has. */
public class PartitionOrder {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\\|", -1);
            LinkedHashMap<TopicPartition, Integer> all = new LinkedHashMap<>();
            for (int p : numbers(parts[0])) {
                all.put(new TopicPartition("t", p), p);
            }
            PartitionStates<Integer> states = new PartitionStates<>();
            states.set(all);
            for (int p : numbers(parts[1])) {
                states.moveToEnd(new TopicPartition("t", p));
            }
            System.out.println(states.partitionStateValues().stream().map(String::valueOf).collect(Collectors.joining(" ")));
        }
    }

    private static List<Integer> numbers(String text) {
        List<Integer> found = new ArrayList<>();
        for (String word : text.trim().split(" ")) {
            if (!word.isEmpty()) {
                found.add(Integer.parseInt(word));
            }
        }
        return found;
    }
}
