import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/**
 * Crew THREADS ROUNDS: the native side of the Java machine, whose memory comes from malloc: direct
 * buffers, compression, new threads, and the compilation of this class. Each task compresses and
 * unpacks a text in direct buffers; the checksums are printed in the order of the tasks.
 */
public final class Crew {
    private static String text(int seed) {
        TreeMap<String, Integer> positions = new TreeMap<>();
        long state = seed;
        for (int i = 0; i < 4000; i++) {
            state = (state * 69069 + 12345) & 0xffffffffL;
            positions.merge("word" + (state >> 16) % 900, i, Integer::sum);
        }
        return positions.toString();
    }

    private static long roundTrip(int seed) throws Exception {
        byte[] bytes = text(seed).getBytes(StandardCharsets.UTF_8);
        ByteBuffer plain = ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
        ByteBuffer packed = ByteBuffer.allocateDirect(bytes.length * 2);
        Deflater deflater = new Deflater(seed % 9 + 1);
        deflater.setInput(plain);
        deflater.finish();
        deflater.deflate(packed);
        deflater.end();
        packed.flip();
        ByteBuffer unpacked = ByteBuffer.allocateDirect(bytes.length);
        Inflater inflater = new Inflater();
        inflater.setInput(packed.duplicate());
        inflater.inflate(unpacked);
        inflater.end();
        if (!unpacked.flip().equals(ByteBuffer.wrap(bytes))) {
            throw new IllegalStateException("task " + seed + " came back changed");
        }
        CRC32 sum = new CRC32();
        sum.update(packed);
        return sum.getValue();
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        for (int generation = 0; generation < 4; generation++) {
            ExecutorService crew = Executors.newFixedThreadPool(threads);
            List<Future<Long>> sums = new ArrayList<>();
            for (int task = 0; task < rounds; task++) {
                int seed = generation * rounds + task;
                sums.add(crew.submit(() -> roundTrip(seed)));
            }
            CRC32 total = new CRC32();
            for (Future<Long> sum : sums) {
                total.update(Long.toString(sum.get()).getBytes(StandardCharsets.UTF_8));
            }
            crew.shutdown();
            System.out.println("generation " + generation + ": " + total.getValue());
        }
    }
}
