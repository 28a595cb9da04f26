import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.nodemanager.NodeManager;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;

/**
 * A YARN cluster in one process: a ResourceManager, and machines that start containers as processes of their own.
 *
 * Its configuration is on the class path. Arguments: its folder, and how many machines.
 */
public class MiniYarn {
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        DefaultMetricsSystem.setMiniClusterMode(true);
        ResourceManager manager = new ResourceManager();
        manager.init(new YarnConfiguration());
        manager.start();
        for (int i = 0; i < Integer.parseInt(arguments[1]); i++) {
            Path machine = Files.createDirectories(folder.resolve("machine-" + i));
            YarnConfiguration conf = new YarnConfiguration();
            conf.set("yarn.nodemanager.local-dirs", machine.resolve("local").toString());
            conf.set("yarn.nodemanager.log-dirs", machine.resolve("logs").toString());
            NodeManager started = new NodeManager();
            started.init(conf);
            started.start();
        }
        Thread.currentThread().join();
    }
}
