import com.sun.tools.attach.VirtualMachine;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryMXBean;
import java.lang.management.MemoryPoolMXBean;
import javax.management.MBeanServerConnection;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * Reads a JVM's memory the way a monitoring tool does: attaches, starts its local management agent, then asks 20 times,
 * ten times a second, for the heap, the non-heap memory, and every pool. Prints the last figures.
 *
 * <p>Arguments: {@code PID}.
 */
public final class JmxPolls {
    private static final int POLLS = 20;
    private static final int EVERY_MS = 100;

    private JmxPolls() {}

    public static void main(String[] args) throws Exception {
        VirtualMachine machine = VirtualMachine.attach(args[0]);
        String address = machine.startLocalManagementAgent();
        machine.detach();
        try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(address))) {
            MBeanServerConnection server = connector.getMBeanServerConnection();
            MemoryMXBean memory = ManagementFactory.getPlatformMXBean(server, MemoryMXBean.class);
            StringBuilder said = new StringBuilder();
            for (int poll = 0; poll < POLLS; poll++) {
                said.setLength(0);
                said.append("heap ").append(memory.getHeapMemoryUsage().getUsed());
                said.append(", rest ").append(memory.getNonHeapMemoryUsage().getUsed());
                for (MemoryPoolMXBean pool : ManagementFactory.getPlatformMXBeans(server, MemoryPoolMXBean.class)) {
                    said.append(", ").append(pool.getName()).append(' ').append(pool.getUsage().getUsed());
                }
                Thread.sleep(EVERY_MS);
            }
            System.out.println(said);
        }
    }
}
