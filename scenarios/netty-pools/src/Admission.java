import java.util.ArrayDeque;
import java.util.Queue;

/** Lets so many uploads in at a time, the others in the order in which they came. */
final class Admission {
    private final Queue<Gate> waiting = new ArrayDeque<>();
    private int free;

    Admission(int places) {
        free = places;
    }

    /** Whether this one has a place now; else it waits, and {@link Gate#admit} will be called. */
    synchronized boolean enter(Gate gate) {
        if (free > 0) {
            free--;
            return true;
        }
        waiting.add(gate);
        return false;
    }

    /** Whether this one was still waiting; else {@link Gate#admit} has been or will be called. */
    synchronized boolean giveUp(Gate gate) {
        return waiting.remove(gate);
    }

    /** A place goes to whoever waits longest. */
    void leave() {
        Gate next;
        synchronized (this) {
            next = waiting.poll();
            if (next == null) {
                free++;
            }
        }
        if (next != null) {
            next.admit();
        }
    }
}
