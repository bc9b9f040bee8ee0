import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.ReferenceCountUtil;
import java.util.ArrayDeque;
import java.util.Queue;

/**
 * Backpressure for uploads: stops reading a request that has no slot ({@code autoRead} off), so that it waits in socket
 * buffers and at its sender, not in this process. Keeps what is already decoded, which is at most one read.
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

    /** Passes on a message of an admitted request, and frees the slot at the end of the request. */
    private void pass(Object message) {
        state = state == State.CLOSED ? State.CLOSED : State.INSIDE;
        boolean last = message instanceof LastHttpContent;
        context.fireChannelRead(message);
        if (last && state == State.INSIDE) {
            state = State.OUTSIDE;
            admission.leave();
        }
    }

    /** Called from any thread. */
    void admit() {
        context.executor().execute(this::goIn);
    }

    private void goIn() {
        if (state == State.CLOSED) {
            admission.leave();
            return;
        }
        state = State.INSIDE;
        // A second request that came with the first needs a slot of its own.
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
