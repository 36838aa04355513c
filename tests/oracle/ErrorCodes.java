import org.apache.kafka.common.protocol.Errors;

/** Kafka's errors: a line each, `NAME code`. */
public class ErrorCodes {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            System.out.println(error.name() + " " + error.code());
        }
    }
}
