import java.io.BufferedReader;
import java.io.InputStreamReader;
import kafka.server.AbstractFetcherManager;
import kafka.server.AbstractFetcherThread;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.server.network.BrokerEndPoint;

/** Each line: fetchers, a partition and a topic. Prints the number of the fetcher that AbstractFetcherManager gives it. */
public class FetcherIds {
    private static final class Fetchers extends AbstractFetcherManager<AbstractFetcherThread> {
        Fetchers(int count) {
            super("fetchers", "clients", count);
        }

        @Override
        public AbstractFetcherThread createFetcherThread(int fetcherId, BrokerEndPoint leader) {
            throw new UnsupportedOperationException();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            TopicPartition partition = new TopicPartition(words[2], Integer.parseInt(words[1]));
            System.out.println(new Fetchers(Integer.parseInt(words[0])).getFetcherId(partition));
        }
    }
}
