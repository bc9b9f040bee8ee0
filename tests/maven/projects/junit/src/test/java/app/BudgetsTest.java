package app;

import dev.loadline.junit.Loadline;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Budgets of three scenarios, each with a fake Loadline that ends in a different way. */
class BudgetsTest {
    @TestFactory
    Stream<DynamicTest> memory() {
        Loadline app = Loadline.scenario("app.loadline.yaml").trials(3).budget("rss.loaded<=160MiB");
        return app.artifact(Path.of("a b.jar")).baseline(Path.of("before")).budgets();
    }

    @TestFactory
    Stream<DynamicTest> dies() {
        return Loadline.scenario("dies.loadline.yaml").budgets();
    }

    @TestFactory
    Stream<DynamicTest> empty() {
        return Loadline.scenario("empty.loadline.yaml").budgets();
    }
}
