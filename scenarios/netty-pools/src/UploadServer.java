import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.AdaptiveRecvByteBufAllocator;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpServerCodec;
import java.util.HashMap;
import java.util.Map;

/**
 * A small upload server on Netty: {@code PUT} of any path counts and discards the body, {@code GET /bytes/N} returns N
 * bytes, {@code GET /pools} the chunks of Netty's pool, every other {@code GET} {@code ok}. Releases every buffer.
 *
 * <p>Arguments: {@code PORT [KEY=VALUE …]}.
 *
 * <ul>
 *   <li>{@code aggregate=no}: bodies are counted as they arrive, not assembled by {@link HttpObjectAggregator}.
 *   <li>{@code receive=65536}: the largest read, in bytes; 32768 by default. Anything read in larger pieces than the
 *       default never enters Netty's thread caches, and over loopback, Linux delivers as much as is asked for.
 *   <li>{@code gate=4}: the number of uploads admitted at a time; the others are not read until one has ended.
 *   <li>{@code writable=yes}: a response is written only as fast as the client reads it.
 * </ul>
 *
 * <p>The allocator and the number of threads are Netty's own settings: {@code -Dio.netty.allocator.type=unpooled},
 * {@code -Dio.netty.eventLoopThreads=16}.
 */
public final class UploadServer {
    private static final int BODY_BYTES_MAX = 64 << 20;
    /** Netty's defaults: the longest first line, the largest head, the largest piece of a body. */
    private static final int[] CODEC_BYTES_MAX = {4096, 8192, 8192};

    private UploadServer() {}

    public static void main(String[] args) throws InterruptedException, ReflectiveOperationException {
        Map<String, String> options = new HashMap<>();
        for (int i = 1; i < args.length; i++) {
            int sign = args[i].indexOf('=');
            options.put(args[i].substring(0, Math.max(sign, 0)), args[i].substring(sign + 1));
        }
        boolean aggregate = !"no".equals(options.remove("aggregate"));
        boolean writable = "yes".equals(options.remove("writable"));
        int receive = Integer.parseInt(options.getOrDefault("receive", "32768"));
        int gate = Integer.parseInt(options.getOrDefault("gate", "0"));
        options.remove("receive");
        options.remove("gate");
        if (!options.isEmpty()) {
            throw new IllegalArgumentException("unknown arguments: " + options);
        }
        Jdk8.pretend();
        Admission admission = gate > 0 ? new Admission(gate) : null;
        new ServerBootstrap()
                .group(new NioEventLoopGroup(1), new NioEventLoopGroup())
                .channel(NioServerSocketChannel.class)
                .option(ChannelOption.SO_BACKLOG, 1024)
                .childOption(ChannelOption.RCVBUF_ALLOCATOR, new AdaptiveRecvByteBufAllocator(64, 1024, receive))
                .childHandler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel channel) {
                        channel.pipeline().addLast(
                                new HttpServerCodec(CODEC_BYTES_MAX[0], CODEC_BYTES_MAX[1], CODEC_BYTES_MAX[2]));
                        if (admission != null) {
                            channel.pipeline().addLast(new Gate(admission));
                        }
                        if (aggregate) {
                            channel.pipeline().addLast(new HttpObjectAggregator(BODY_BYTES_MAX));
                        }
                        channel.pipeline().addLast(new Service(writable));
                    }
                })
                .bind("127.0.0.1", Integer.parseInt(args[0]))
                .sync();
    }
}
