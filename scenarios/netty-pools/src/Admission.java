import java.util.ArrayDeque;
import java.util.Queue;

/** Limits concurrent uploads; the others wait in order of arrival. */
final class Admission {
    private final Queue<Gate> waiting = new ArrayDeque<>();
    private int free;

    Admission(int places) {
        free = places;
    }

    /** Whether there is room now; if not, the gate waits for {@link Gate#admit}. */
    synchronized boolean enter(Gate gate) {
        if (free > 0) {
            free--;
            return true;
        }
        waiting.add(gate);
        return false;
    }

    /** Whether the gate was still waiting; if not, {@link Gate#admit} has been or will be called. */
    synchronized boolean giveUp(Gate gate) {
        return waiting.remove(gate);
    }

    /** Passes the slot on to the gate that has waited longest. */
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
