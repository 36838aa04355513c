import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.server.storage.log.FetchIsolation;

/** Up to where a fetch may read. Arguments: replica ids. Lines out: FetchIsolation of each, uncommitted and committed. */
public class ReadIsolation {
    public static void main(String[] args) {
        for (String id : args)
            for (IsolationLevel level : IsolationLevel.values())
                System.out.println(FetchIsolation.of(Integer.parseInt(id), level));
    }
}
