import java.util.Scanner;
import org.apache.kafka.common.requests.FetchMetadata;

/** The epoch after each one of stdin, by Kafka's own class. */
public class NextEpochs {
    public static void main(String[] args) {
        for (Scanner in = new Scanner(System.in); in.hasNextInt();) System.out.println(FetchMetadata.nextEpoch(in.nextInt()));
    }
}
