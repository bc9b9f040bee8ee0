package dev.loadline.junit;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.DynamicTest;
import org.opentest4j.TestAbortedException;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;
import org.xml.sax.SAXException;

/**
 * A dynamic test for each budget of a scenario. All tests share one run, which starts with the first call of
 * {@link #budgets()}.
 *
 * <pre>
 * &#64;TestFactory
 * Stream&lt;DynamicTest&gt; memory() {
 *     return Loadline.scenario("app.loadline.yaml").budgets();
 * }
 * </pre>
 *
 * An exceeded budget fails its test. An undecided budget, or a machine that does not run Linux, aborts it. A failed
 * measurement is an error with Loadline's message. The program is the one in the system property
 * `loadline.executable`, in the environment variable `LOADLINE`, or on the PATH.
 */
public final class Loadline {
    private static final int BROKEN = 1;

    private final String scenario;
    private final List<String> options = new ArrayList<>();
    private List<DynamicTest> tests;

    private Loadline(String scenario) {
        this.scenario = scenario;
    }

    /** The scenario file `NAME.loadline.yaml`, relative to the directory in which the tests run. */
    public static Loadline scenario(String file) {
        return new Loadline(Objects.requireNonNull(file));
    }

    /** The number of trials, each in a fresh JVM. */
    public Loadline trials(int trials) {
        return argument("--trials", Integer.toString(trials));
    }

    /** A budget in addition to the scenario's, such as `rss.loaded<=160MiB`. */
    public Loadline budget(String budget) {
        return argument("--budget", budget);
    }

    /** The value of `{artifact}` in the scenario. */
    public Loadline artifact(Path jar) {
        return argument("--artifact", jar.toString());
    }

    /** The baseline: an archive of an earlier run. */
    public Loadline baseline(Path archive) {
        return argument("--baseline", archive.toString());
    }

    /** More options for `loadline run`. */
    public Loadline argument(String... words) {
        options.addAll(List.of(words));
        return this;
    }

    /** A test for each budget. */
    public Stream<DynamicTest> budgets() {
        return Stream.of(this).flatMap(run -> run.once().stream());
    }

    private synchronized List<DynamicTest> once() {
        if (tests == null) {
            tests = tests();
        }
        return tests;
    }

    private List<DynamicTest> tests() {
        try {
            return run();
        } catch (InterruptedException cause) {
            Thread.currentThread().interrupt();
            return List.of(error("interrupted", cause));
        } catch (IOException | ParserConfigurationException | SAXException cause) {
            return List.of(error("Loadline cannot be run, or its output cannot be read: " + cause, cause));
        }
    }

    private List<DynamicTest> run()
            throws IOException, InterruptedException, ParserConfigurationException, SAXException {
        if (!System.getProperty("os.name", "").startsWith("Linux")) {
            String why = "Loadline runs only on Linux, but this is " + System.getProperty("os.name");
            return List.of(test(name(), () -> { throw new TestAbortedException(why); }));
        }
        String program = program();
        if (program == null) {
            return List.of(error("there is no `loadline` on the PATH; set -Dloadline.executable=FILE or the"
                    + " environment variable LOADLINE", null));
        }
        Path folder = Files.createTempDirectory(builds(), "loadline-");
        Path report = folder.resolve("budgets.xml");
        Path said = folder.resolve("said.txt");
        List<String> command = new ArrayList<>(List.of(program, "run", scenario, "--junit", report.toString()));
        // One line is enough, because the whole summary is in a separate file.
        if (!options.contains("--markdown")) {
            command.addAll(List.of("--markdown", folder.resolve("summary.md").toString()));
        }
        command.addAll(List.of("--out", folder.resolve("archive").toString(), "--quiet"));
        command.addAll(options);
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(said.toFile());
        Process process = builder.redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        try {
            process.getOutputStream().close();
            int exit = process.waitFor();
            if (exit != 0 && exit != BROKEN) {
                return List.of(error("exit code " + exit + ":\n" + Files.readString(said).trim(), null));
            }
        } finally {
            process.destroy();
        }
        List<DynamicTest> found = read(report, folder);
        return found.isEmpty() ? List.of(error("there is no budget: set one with budget(\"…\")", null)) : found;
    }

    /** The build directory of Maven or Gradle, or else the system's directory for temporary files. */
    private static Path builds() {
        for (String name : List.of("target", "build")) {
            if (Files.isDirectory(Path.of(name))) {
                return Path.of(name).toAbsolutePath();
            }
        }
        return Path.of(System.getProperty("java.io.tmpdir"));
    }

    private static String program() {
        String named = System.getProperty("loadline.executable", System.getenv("LOADLINE"));
        if (named != null && !named.isEmpty()) {
            return named;
        }
        for (String folder : Objects.toString(System.getenv("PATH"), "").split(File.pathSeparator)) {
            Path file = Path.of(folder, "loadline");
            // An empty entry would mean the project's directory.
            if (!folder.isEmpty() && Files.isRegularFile(file) && Files.isExecutable(file)) {
                return file.toString();
            }
        }
        return null;
    }

    private List<DynamicTest> read(Path report, Path folder)
            throws IOException, ParserConfigurationException, SAXException {
        DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
        factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
        NodeList cases = factory.newDocumentBuilder().parse(report.toFile()).getElementsByTagName("testcase");
        List<DynamicTest> found = new ArrayList<>();
        for (int at = 0; at < cases.getLength(); at++) {
            Element budget = (Element) cases.item(at);
            if ("loadline.budget".equals(budget.getAttribute("classname"))) {
                found.add(test(budget.getAttribute("name"), () -> judge(budget, folder)));
            }
        }
        return found;
    }

    private static void judge(Element budget, Path folder) {
        NodeList failures = budget.getElementsByTagName("failure");
        if (failures.getLength() > 0) {
            String message = ((Element) failures.item(0)).getAttribute("message");
            Assertions.fail(message + "\nthe archive, for `loadline report`: " + folder.resolve("archive"));
        }
        NodeList skipped = budget.getElementsByTagName("skipped");
        if (skipped.getLength() > 0) {
            throw new TestAbortedException("undecided: " + ((Element) skipped.item(0)).getAttribute("message"));
        }
    }

    private DynamicTest error(String what, Throwable cause) {
        return test(name(), () -> { throw new IllegalStateException(what, cause); });
    }

    private String name() {
        return "loadline run " + scenario;
    }

    private static DynamicTest test(String name, org.junit.jupiter.api.function.Executable body) {
        return DynamicTest.dynamicTest(name, body);
    }
}
