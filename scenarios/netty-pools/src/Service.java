import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.ReferenceCountUtil;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Responds to one connection's requests, whole or in pieces, and releases them.
 *
 * <p>An error closes the connection; the first few are logged to stderr.
 */
final class Service extends ChannelInboundHandlerAdapter {
    private static final int PART_BYTES = 64 << 10;
    private static final int ERRORS_TOLD_MAX = 8;
    private static final AtomicInteger ERRORS = new AtomicInteger();

    /** Whether responses wait for their reader. */
    private final boolean writable;
    private String path;
    private boolean keepAlive;
    private long received;
    private long toSend;
    private boolean pumping;

    Service(boolean writable) {
        this.writable = writable;
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        boolean last = message instanceof LastHttpContent;
        try {
            if (message instanceof HttpRequest) {
                HttpRequest request = (HttpRequest) message;
                path = request.uri();
                keepAlive = !"close".equalsIgnoreCase(request.headers().get("Connection"));
                received = 0;
            }
            if (message instanceof HttpContent) {
                received += ((HttpContent) message).content().readableBytes();
            }
        } finally {
            ReferenceCountUtil.release(message);
        }
        if (last) {
            answer(context);
        }
    }

    private void answer(ChannelHandlerContext context) {
        if (path.startsWith("/bytes/")) {
            toSend = Long.parseLong(path.substring("/bytes/".length()));
            HttpResponse head = new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK);
            head.headers().set("Content-Length", String.valueOf(toSend));
            context.write(head);
            pump(context);
            return;
        }
        String text = path.equals("/pools") ? Pools.text() : received > 0 ? received + " bytes\n" : "ok\n";
        ByteBuf body = Unpooled.wrappedBuffer(text.getBytes(StandardCharsets.UTF_8));
        HttpResponse whole = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK, body);
        whole.headers().set("Content-Length", String.valueOf(body.readableBytes()));
        end(context.writeAndFlush(whole));
    }

    /** Writes what is left, all at once or only as fast as the reader reads. A write may re-enter this method. */
    private void pump(ChannelHandlerContext context) {
        if (pumping) {
            return;
        }
        pumping = true;
        try {
            while (toSend > 0 && (!writable || context.channel().isWritable())) {
                int length = (int) Math.min(PART_BYTES, toSend);
                ByteBuf part = context.alloc().directBuffer(length).writeZero(length);
                toSend -= length;
                context.writeAndFlush(new DefaultHttpContent(part));
                if (toSend == 0) {
                    end(context.writeAndFlush(LastHttpContent.EMPTY_LAST_CONTENT));
                }
            }
        } finally {
            pumping = false;
        }
    }

    private void end(ChannelFuture written) {
        if (!keepAlive) {
            written.addListener(ChannelFutureListener.CLOSE);
        }
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        pump(context);
        context.fireChannelWritabilityChanged();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        toSend = 0;
        if (ERRORS.getAndIncrement() < ERRORS_TOLD_MAX) {
            System.err.println("upload-server: " + path + ": " + cause);
        }
        context.close();
    }
}
