import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;

/**
 * Decodes the frames of a file, in rounds, and prints the ns of each round: DecodeFrames FILE ROUNDS parse|read.
 * "parse" calls what a user of kafka-clients can call, on whole frames. "read" calls only the generated reader, on
 * bodies.
 * The file has for each frame: int8 isRequest, int32 length, request frame, int32 length, frame, int32 offset of the
 * frame's body. The request frame of a response is the request that it answers.
 */
public class DecodeFrames {
    record Frame(boolean isRequest, RequestHeader header, ByteBuffer whole, ByteBuffer body) {
        static Frame from(DataInputStream in) throws IOException {
            boolean isRequest = in.readByte() == 1;
            RequestHeader header = RequestHeader.parse(ByteBuffer.wrap(in.readNBytes(in.readInt())));
            ByteBuffer whole = ByteBuffer.wrap(in.readNBytes(in.readInt()));
            return new Frame(isRequest, header, whole, whole.duplicate().position(in.readInt()).slice());
        }

        Object parse() {
            ByteBuffer bytes = whole.duplicate();
            if (!isRequest) return AbstractResponse.parseResponse(bytes, header);
            RequestHeader own = RequestHeader.parse(bytes);
            return AbstractRequest.parseRequest(own.apiKey(), own.apiVersion(), new ByteBufferAccessor(bytes));
        }

        Object read() {
            ApiMessageType type = ApiMessageType.fromApiKey(header.apiKey().id);
            ApiMessage message = isRequest ? type.newRequest() : type.newResponse();
            message.read(new ByteBufferAccessor(body.duplicate()), header.apiVersion());
            return message;
        }
    }

    public static void main(String[] args) throws Exception {
        List<Frame> frames = new ArrayList<>();
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(args[0])))) {
            while (in.available() > 0) frames.add(Frame.from(in));
        }
        Function<Frame, Object> decode = args[2].equals("parse") ? Frame::parse : Frame::read;
        Object[] kept = new Object[1024]; // so that no message can be optimised away
        for (int round = 0; round < Integer.parseInt(args[1]); round++) {
            long start = System.nanoTime();
            for (int i = 0; i < frames.size(); i++) kept[i % kept.length] = decode.apply(frames.get(i));
            System.out.println(System.nanoTime() - start);
        }
        System.err.println(kept[0]);
    }
}
