import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;

/**
 * For each line "REQUEST RESPONSE", frames in hex without their size and "-" for a response that is not there: reads them
 * as broker and client do, and prints each message as JSON on a line of its own, records as their size; "-" for none.
 */
public class ParseFrames {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] frames = line.split(" ");
            ByteBuffer request = buffer(frames[0]);
            RequestHeader header = RequestHeader.parse(request);
            AbstractRequest parsed =
                AbstractRequest.parseRequest(header.apiKey(), header.apiVersion(), new ByteBufferAccessor(request)).request;
            if (request.hasRemaining()) throw new IllegalStateException(request.remaining() + " bytes left of " + header);
            out.append(json(parsed.data(), header.apiVersion())).append('\n');
            if (frames[1].equals("-")) {
                out.append("-\n");
            } else {
                ByteBuffer response = buffer(frames[1]);
                ApiMessage data = AbstractResponse.parseResponse(response, header).data();
                if (response.hasRemaining()) throw new IllegalStateException(response.remaining() + " bytes left of " + header);
                out.append(json(data, header.apiVersion())).append('\n');
            }
            System.out.print(out);
            out.setLength(0);
        }
    }

    private static ByteBuffer buffer(String hex) {
        return ByteBuffer.wrap(HexFormat.of().parseHex(hex));
    }

    private static JsonNode json(ApiMessage data, short version) throws Exception {
        Class<?> converter = Class.forName(data.getClass().getName() + "JsonConverter");
        boolean withRecords = false;
        return (JsonNode) converter.getMethod("write", data.getClass(), short.class, boolean.class)
            .invoke(null, data, version, withRecords);
    }
}
