import com.sun.tools.attach.VirtualMachine;
import javax.management.*;
import javax.management.remote.*;

/** Prints for each broker, by its own metrics, how long its memory pool was depleted since it started (ms), and the
 *  free bytes of the pool. Arguments: the process ids of brokers on this machine. */
public class MemoryPools {
    public static void main(String[] pids) throws Exception {
        for (String pid : pids) {
            VirtualMachine vm = VirtualMachine.attach(pid);
            JMXServiceURL url = new JMXServiceURL(vm.startLocalManagementAgent());
            vm.detach();
            try (JMXConnector connector = JMXConnectorFactory.connect(url)) {
                MBeanServerConnection broker = connector.getMBeanServerConnection();
                Object depleted = broker.getAttribute(new ObjectName("kafka.server:type=socket-server-metrics"), "MemoryPoolDepletedTimeTotal");
                Object free = broker.getAttribute(new ObjectName("kafka.network:type=SocketServer,name=MemoryPoolAvailable"), "Value");
                System.out.println(depleted + " " + free);
            }
        }
    }
}
