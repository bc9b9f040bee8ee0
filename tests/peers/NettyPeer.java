import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Netty: {@code java -cp 'JARS/*' NettyPeer.java PORT}. The paths are those of {@code JdkPeer}, plus {@code /endless}:
 * 100,000 bytes that end with the connection.
 */
final class NettyPeer extends SimpleChannelInboundHandler<FullHttpRequest> {
    private static final AtomicLong REQUESTS = new AtomicLong();
    private static final AtomicLong CONNECTIONS = new AtomicLong();
    private static final int BODY_BYTES_MAX = 16 << 20;

    private boolean counted;

    public static void main(String[] args) throws InterruptedException {
        new ServerBootstrap()
                .group(new NioEventLoopGroup(1), new NioEventLoopGroup(2))
                .channel(NioServerSocketChannel.class)
                .childHandler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel channel) {
                        channel.pipeline().addLast(
                                new HttpServerCodec(), new HttpObjectAggregator(BODY_BYTES_MAX), new NettyPeer());
                    }
                })
                .bind("127.0.0.1", Integer.parseInt(args[0]))
                .sync();
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
        String path = request.uri();
        if (path.equals("/counted")) {
            say(context, request, HttpResponseStatus.OK, "counted " + REQUESTS + " " + CONNECTIONS + "\n");
            return;
        }
        REQUESTS.incrementAndGet();
        if (!counted) {
            counted = true;
            CONNECTIONS.incrementAndGet();
        }
        switch (path) {
            case "/fixed", "/last" -> say(context, request, HttpResponseStatus.OK, "hello world\n");
            case "/chunked", "/endless" -> stream(context, path.equals("/chunked"));
            case "/length" ->
                say(context, request, HttpResponseStatus.OK, "got " + request.content().readableBytes() + "\n");
            default -> say(context, request, HttpResponseStatus.NOT_FOUND, "no\n");
        }
    }

    private static void say(
            ChannelHandlerContext context, FullHttpRequest request, HttpResponseStatus status, String text) {
        boolean keeps = HttpUtil.isKeepAlive(request) && !request.uri().equals("/last");
        byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
        boolean head = request.method().equals(HttpMethod.HEAD);
        var content = head ? Unpooled.EMPTY_BUFFER : Unpooled.wrappedBuffer(bytes);
        var response = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, status, content);
        response.headers().set(HttpHeaderNames.CONTENT_LENGTH, bytes.length);
        HttpUtil.setKeepAlive(response, keeps);
        var written = context.writeAndFlush(response);
        if (!keeps) {
            written.addListener(ChannelFutureListener.CLOSE);
        }
    }

    private static void stream(ChannelHandlerContext context, boolean chunked) {
        var response = new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK);
        HttpUtil.setTransferEncodingChunked(response, chunked);
        context.write(response);
        for (int i = 0; i < 10; i++) {
            byte[] piece = "0123456789".repeat(1000).getBytes(StandardCharsets.US_ASCII);
            context.writeAndFlush(new DefaultHttpContent(Unpooled.wrappedBuffer(piece)));
        }
        var written = context.writeAndFlush(LastHttpContent.EMPTY_LAST_CONTENT);
        if (!chunked) {
            written.addListener(ChannelFutureListener.CLOSE);
        }
    }
}
