import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;

/** A clock that stands still until it is set. */
public class SessionClock implements Time {
    public long ms;

    public long milliseconds() { return ms; }
    public long nanoseconds() { return ms * 1_000_000; }
    public long hiResClockMs() { return ms; }
    public void sleep(long millis) { ms += millis; }
    public void waitObject(Object o, Supplier<Boolean> until, long deadline) { throw new UnsupportedOperationException(); }
    public Timer timer(long timeout) { throw new UnsupportedOperationException(); }
}
