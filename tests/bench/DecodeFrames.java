import java.io.DataInputStream;
import java.io.FileInputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;

/** Reads message bodies "int16 apiKey, int8 isRequest, int16 version, int32 length, bytes" and prints the ns of each round of decoding. */
public class DecodeFrames {
    record Body(ApiMessageType type, boolean isRequest, short version, ByteBuffer bytes) {
        ApiMessage decode() {
            ApiMessage message = isRequest ? type.newRequest() : type.newResponse();
            message.read(new ByteBufferAccessor(bytes.duplicate()), version);
            return message;
        }
    }

    public static void main(String[] args) throws Exception {
        List<Body> bodies = new ArrayList<>();
        try (DataInputStream in = new DataInputStream(new java.io.BufferedInputStream(new FileInputStream(args[0])))) {
            while (in.available() > 0) {
                ApiMessageType type = ApiMessageType.fromApiKey(in.readShort());
                boolean isRequest = in.readByte() == 1;
                short version = in.readShort();
                bodies.add(new Body(type, isRequest, version, ByteBuffer.wrap(in.readNBytes(in.readInt()))));
            }
        }
        ApiMessage[] kept = new ApiMessage[1024]; // so that no message can be optimised away
        for (int round = 0; round < Integer.parseInt(args[1]); round++) {
            long start = System.nanoTime();
            for (int i = 0; i < bodies.size(); i++) kept[i % kept.length] = bodies.get(i).decode();
            System.out.println(System.nanoTime() - start);
        }
        System.err.println(kept[0]);
    }
}
