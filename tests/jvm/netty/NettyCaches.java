import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.util.concurrent.EventExecutor;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;

/**
 * Netty with pools of known content: {@code java -cp 'JARS/*' NettyCaches.java PORT pooled|own|default THREADS}, with
 * Netty's own pool, one that no static field refers to, or Netty's default. Each event loop allocates and releases 64
 * direct buffers of 32 KiB, so that its cache keeps them all; the first also holds one buffer of 1 MiB. Prints
 * {@code ready PORT} and waits.
 */
// truth: buffers=64 buffer_bytes=32768 held_bytes=1048576
final class NettyCaches {
    private static final List<ByteBuf> HELD = new ArrayList<>();

    private NettyCaches() {}

    public static void main(String[] arguments) throws Exception {
        boolean pooled = arguments[1].equals("pooled");
        ByteBufAllocator allocator = pooled ? PooledByteBufAllocator.DEFAULT
                : arguments[1].equals("own") ? new PooledByteBufAllocator(true) : ByteBufAllocator.DEFAULT;
        NioEventLoopGroup loops = new NioEventLoopGroup(Integer.parseInt(arguments[2]));
        Channel server = new ServerBootstrap().group(loops).channel(NioServerSocketChannel.class)
                .childHandler(new ChannelInboundHandlerAdapter())
                .bind(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0]))).sync().channel();
        for (EventExecutor loop : loops) {
            loop.submit(new Runnable() {
                @Override
                public void run() {
                    fill(allocator);
                }
            }).sync();
        }
        System.out.println("ready " + ((InetSocketAddress) server.localAddress()).getPort());
        Thread.currentThread().join();
    }

    private static synchronized void fill(ByteBufAllocator allocator) {
        List<ByteBuf> taken = new ArrayList<>();
        for (int i = 0; i < 64; i++) {
            taken.add(allocator.directBuffer(32 << 10));
        }
        for (ByteBuf buffer : taken) {
            buffer.release();
        }
        if (HELD.isEmpty()) {
            HELD.add(allocator.directBuffer(1 << 20));
        }
    }
}
