import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.ReferenceCountUtil;
import java.util.ArrayDeque;
import java.util.Queue;

/**
 * Backpressure for uploads: a request without a place is not read on ({@code autoRead} off), so that it waits in the
 * socket buffers and at its sender, not in memory of this process. What had been decoded by then is held, one read at
 * most.
 *
 * <p>All methods but {@link #admit} are called on the connection's event loop.
 */
final class Gate extends ChannelInboundHandlerAdapter {
    private enum State { OUTSIDE, WAITING, INSIDE, CLOSED }

    private final Admission admission;
    private final Queue<Object> held = new ArrayDeque<>();
    private State state = State.OUTSIDE;
    private ChannelHandlerContext context;

    Gate(Admission admission) {
        this.admission = admission;
    }

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        this.context = context;
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (state == State.WAITING) {
            held.add(message);
        } else if (state == State.OUTSIDE && message instanceof HttpRequest && !admission.enter(this)) {
            state = State.WAITING;
            context.channel().config().setAutoRead(false);
            held.add(message);
        } else {
            pass(message);
        }
    }

    /** Hands on a message of a request that has a place, which ends with the request. */
    private void pass(Object message) {
        state = state == State.CLOSED ? State.CLOSED : State.INSIDE;
        boolean last = message instanceof LastHttpContent;
        context.fireChannelRead(message);
        if (last && state == State.INSIDE) {
            state = State.OUTSIDE;
            admission.leave();
        }
    }

    /** A place has come free; from any thread. */
    void admit() {
        context.executor().execute(this::goIn);
    }

    private void goIn() {
        if (state == State.CLOSED) {
            admission.leave();
            return;
        }
        state = State.INSIDE;
        // A second request that came with the first asks for a place of its own.
        Queue<Object> messages = new ArrayDeque<>(held);
        held.clear();
        while (!messages.isEmpty()) {
            channelRead(context, messages.poll());
        }
        context.fireChannelReadComplete();
        if (state != State.WAITING) {
            context.channel().config().setAutoRead(true);
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        State before = state;
        state = State.CLOSED;
        held.forEach(ReferenceCountUtil::release);
        held.clear();
        if (before == State.WAITING) {
            admission.giveUp(this);
        } else if (before == State.INSIDE) {
            admission.leave();
        }
        context.fireChannelInactive();
    }
}
