import com.sun.tools.attach.VirtualMachine;
import javax.management.*;
import javax.management.remote.*;

/** Tells how long the memory pool of brokers on this machine was depleted since they started, and what it has free, by
 *  their own metrics. Arguments: the brokers' process ids; a line for each: milliseconds and bytes. */
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
