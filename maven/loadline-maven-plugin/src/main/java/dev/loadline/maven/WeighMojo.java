package dev.loadline.maven;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.inject.Inject;
import org.apache.maven.artifact.Artifact;
import org.apache.maven.execution.MavenSession;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.plugin.descriptor.PluginDescriptor;
import org.apache.maven.plugins.annotations.LifecyclePhase;
import org.apache.maven.plugins.annotations.Mojo;
import org.apache.maven.plugins.annotations.Parameter;
import org.apache.maven.toolchain.Toolchain;
import org.apache.maven.toolchain.ToolchainManager;
import org.eclipse.aether.RepositorySystem;

/** Weighs the project's server under load. Never fails the build, so that cleanup goals run; `verify` may fail it. */
@Mojo(name = "weigh", defaultPhase = LifecyclePhase.INTEGRATION_TEST, threadSafe = true)
public final class WeighMojo extends LoadlineMojo {
    /** With at least this many trials, an interval is that of the center. */
    private static final int TRIALS = 5;
    /** By then, HotSpot has freed its compilers' memory, which can differ by 16 MiB between JVMs. */
    private static final String REST = "12s";
    /** Only one server is weighed at a time, even in parallel builds, because two would disturb each other. */
    private static final Object ONE_AT_A_TIME = new Object();
    private static final String SUFFIX = ".loadline.yaml";

    @Parameter(defaultValue = "${session}", readonly = true, required = true)
    private MavenSession session;

    @Parameter(defaultValue = "${plugin}", readonly = true, required = true)
    private PluginDescriptor plugin;

    /**
     * The scenario: a file `NAME.loadline.yaml`, or a directory that contains one of the same name. Default: the one in
     * the project's directory or in `src/test/loadline`. Without a scenario, the project's jar is weighed.
     */
    @Parameter(property = "loadline.scenario")
    private File scenario;

    /** Budgets in addition to the scenario's, such as `rss.loaded&lt;=160MiB`. */
    @Parameter(property = "loadline.budgets")
    private List<String> budgets = new ArrayList<>();

    /** Number of trials, each in a fresh JVM. Default: the scenario's, or 5 without a scenario. */
    @Parameter(property = "loadline.trials")
    private Integer trials;

    /** The baseline: an archive of an earlier run, or a configuration of the scenario. */
    @Parameter(property = "loadline.baseline")
    private String baseline;

    /** The verdict for an undecided budget: `pass`, with a warning, or `fail`. */
    @Parameter(property = "loadline.undecided")
    private String undecided;

    /**
     * More options for Loadline. After `--`: arguments of the jar, or, if they contain `{artifact}`, the whole command
     * that starts the server.
     */
    @Parameter(property = "loadline.arguments")
    private List<String> arguments = new ArrayList<>();

    /** The file to weigh, and the value of `{artifact}`. Default: the project's jar. */
    @Parameter(property = "loadline.artifact")
    private File artifact;

    /** The binary. Default: `loadline` on the PATH if it has this version, or else the artifact of a repository. */
    @Parameter(property = "loadline.executable")
    private File executable;

    /** The version of the binary. Default: the version of this plugin. */
    @Parameter(property = "loadline.version")
    private String binaryVersion;

    /** The JDK that runs the server, by properties of its toolchain, such as `version`. */
    @Parameter
    private Map<String, String> jdkToolchain;

    /** Whether to fail on a machine that Loadline does not support. */
    @Parameter(property = "loadline.failIfUnsupported", defaultValue = "false")
    private boolean failIfUnsupported;

    @Inject
    private RepositorySystem repositories;

    @Inject
    private ToolchainManager toolchains;

    @Override
    public void execute() throws MojoExecutionException {
        Outcome outcome;
        try {
            outcome = weigh();
        } catch (MojoExecutionException cause) {
            getLog().error(cause.getMessage());
            getLog().debug(cause);
            outcome = Outcome.of(Outcome.NOT_STARTED, cause.getMessage());
        }
        try {
            outcome.write(outcomeFile());
        } catch (IOException cause) {
            throw new MojoExecutionException("cannot write " + outcomeFile() + ": " + cause.getMessage(), cause);
        }
    }

    private Outcome weigh() throws MojoExecutionException {
        clear();
        String why = skippedBy() != null ? skippedBy() + " is set" : unsupported();
        if (why == null && "pom".equals(project.getPackaging()) && scenario == null && artifact == null) {
            why = "this module builds no server (its packaging is pom)";
        }
        if (why != null) {
            getLog().info("skipped: " + why);
            return Outcome.skipped(why);
        }
        Executable found = new Executable(repositories, session, project, getLog());
        String version = binaryVersion == null ? plugin.getVersion() : binaryVersion;
        synchronized (ONE_AT_A_TIME) {
            return run(found.find(executable, version, outputDirectory.toPath()));
        }
    }

    /** Why Loadline cannot run on this machine; null if it can. */
    private String unsupported() throws MojoExecutionException {
        boolean knows = executable != null ? Platform.isLinux() : Platform.classifier() != null;
        if (knows) {
            return null;
        }
        String why = "Loadline runs only on Linux (x86_64, aarch64), but this is " + Platform.name();
        if (failIfUnsupported) {
            throw new MojoExecutionException(why + "\nhint: remove failIfUnsupported, and let CI check the budgets");
        }
        getLog().warn(why + "; budgets are not checked here");
        return why;
    }

    /** Deletes the results of an earlier build, which could be mistaken for this one's. */
    private void clear() throws MojoExecutionException {
        Path folder = outputDirectory.toPath();
        try {
            for (String name : new String[] {"report.html", "result.json", "comment.md"}) {
                Files.deleteIfExists(folder.resolve(name));
            }
            Files.deleteIfExists(outcomeFile());
            Files.deleteIfExists(reportFile.toPath());
            Path archive = folder.resolve("archive");
            if (Files.exists(archive)) {
                try (Stream<Path> all = Files.walk(archive)) {
                    for (Path path : all.sorted(Comparator.reverseOrder()).collect(Collectors.toList())) {
                        Files.delete(path);
                    }
                }
            }
            Files.createDirectories(folder);
            Files.createDirectories(reportFile.toPath().toAbsolutePath().getParent());
        } catch (IOException cause) {
            throw new MojoExecutionException("cannot prepare " + folder + ": " + cause, cause);
        }
    }

    private Outcome run(Path program) throws MojoExecutionException {
        List<String> command = new Command(program).words();
        getLog().info(String.join(" ", command));
        List<String> said = Collections.synchronizedList(new ArrayList<>());
        try {
            int exit = Program.run(started(command), getLog()::info, line -> {
                said.add(line);
                getLog().info(line);
            });
            if (exit == 0 || exit == 1) {
                writeDocument(program);
            }
            return Outcome.of(exit, Program.error(said));
        } catch (IOException cause) {
            throw new MojoExecutionException("cannot run " + program + ": " + cause.getMessage(), cause);
        } catch (InterruptedException cause) {
            Thread.currentThread().interrupt();
            throw new MojoExecutionException("interrupted", cause);
        }
    }

    /** Writes the result as JSON, in addition to the summary in the log. */
    private void writeDocument(Path program) throws IOException, InterruptedException, MojoExecutionException {
        List<String> command = new ArrayList<>(List.of(program.toString(), "report", "--json"));
        command.addAll(judging());
        command.add(outputDirectory.toPath().resolve("archive").toString());
        ProcessBuilder builder = started(command);
        builder.redirectOutput(outputDirectory.toPath().resolve("result.json").toFile());
        List<String> said = Collections.synchronizedList(new ArrayList<>());
        int exit = Program.run(builder, line -> {}, said::add);
        if (exit != 0 && exit != 1) {
            getLog().warn("there is no result.json: " + Program.error(said));
        }
    }

    /** Runs it in the project's directory, with the toolchain's JDK or the JDK that runs the build. */
    private ProcessBuilder started(List<String> command) throws MojoExecutionException {
        ProcessBuilder builder = new ProcessBuilder(command).directory(project.getBasedir());
        Path home = jdk();
        Map<String, String> environment = builder.environment();
        environment.put("JAVA_HOME", home.toString());
        environment.merge("PATH", home.resolve("bin").toString(), (old, own) -> own + File.pathSeparator + old);
        return builder;
    }

    private Path jdk() throws MojoExecutionException {
        Toolchain toolchain = toolchains.getToolchainFromBuildContext("jdk", session);
        if (jdkToolchain != null) {
            List<Toolchain> fitting = toolchains.getToolchains(session, "jdk", jdkToolchain);
            if (fitting.isEmpty()) {
                throw new MojoExecutionException("no toolchain matches jdkToolchain " + jdkToolchain
                        + "\nhint: add a matching JDK to ~/.m2/toolchains.xml");
            }
            toolchain = fitting.get(0);
        }
        String java = toolchain == null ? null : toolchain.findTool("java");
        if (toolchain != null && java == null) {
            throw new MojoExecutionException("the toolchain " + toolchain + " has no java");
        }
        return java == null ? Path.of(System.getProperty("java.home")) : Path.of(java).getParent().getParent();
    }

    private List<String> judging() {
        List<String> words = new ArrayList<>();
        for (String budget : budgets) {
            words.addAll(List.of("--budget", budget));
        }
        if (baseline != null) {
            words.addAll(List.of("--baseline", baseline));
        }
        if (undecided != null) {
            words.addAll(List.of("--undecided", undecided));
        }
        return words;
    }

    /** The command line for a scenario or a jar. */
    private final class Command {
        private final Path program;
        private final File file;

        Command(Path program) throws MojoExecutionException {
            this.program = program;
            this.file = scenario == null ? found() : scenario;
        }

        List<String> words() throws MojoExecutionException {
            List<String> words = new ArrayList<>(List.of(program.toString(), file == null ? "weigh" : "run"));
            words.addAll(judging());
            Integer count = trials == null && file == null ? Integer.valueOf(TRIALS) : trials;
            if (count != null) {
                words.addAll(List.of("--trials", count.toString()));
            }
            boolean rests = arguments.stream().anyMatch(word -> word.equals("--rest") || word.startsWith("--rest="));
            if (file == null && !rests) {
                words.addAll(List.of("--rest", REST));
            }
            Path folder = outputDirectory.toPath();
            words.addAll(List.of("--out", folder.resolve("archive").toString()));
            words.addAll(List.of("--html", folder.resolve("report.html").toString()));
            words.addAll(List.of("--junit", reportFile.toString()));
            if (baseline != null) {
                words.addAll(List.of("--comment", folder.resolve("comment.md").toString()));
            }
            if (namesArtifact()) {
                words.addAll(List.of("--artifact", jar().toString()));
            }
            // The user's options come last, because they override the others and may end with `--` and a command.
            if (file != null) {
                words.add(file.toString());
                words.addAll(arguments);
            } else {
                int behind = words.size() + arguments.indexOf("--");
                words.addAll(arguments);
                if (!namesArtifact()) {
                    words.add(arguments.contains("--") ? behind : words.size(), jar().toString());
                }
            }
            return words;
        }

        /** Whether the scenario uses `{artifact}`; otherwise, the option has no effect. */
        private boolean namesArtifact() throws MojoExecutionException {
            if (file == null) {
                return arguments.stream().anyMatch(word -> word.contains("{artifact}"));
            }
            Path text = file.isDirectory() ? file.toPath().resolve(file.getName() + SUFFIX) : file.toPath();
            try {
                return Files.isRegularFile(text) && Files.readString(text).contains("{artifact}");
            } catch (IOException cause) {
                throw new MojoExecutionException("cannot read " + text + ": " + cause.getMessage(), cause);
            }
        }
    }

    /** The scenario in its usual place; null if there is none. */
    private File found() throws MojoExecutionException {
        Path base = project.getBasedir().toPath();
        List<File> all = new ArrayList<>();
        for (Path folder : List.of(base, base.resolve("src/test/loadline"))) {
            File[] files = folder.toFile().listFiles((in, name) -> isScenario(name));
            Collections.addAll(all, files == null ? new File[0] : files);
        }
        if (all.size() < 2) {
            return all.isEmpty() ? null : all.get(0);
        }
        String own = project.getArtifactId() + SUFFIX;
        for (File file : all) {
            if (file.getName().equals(own)) {
                return file;
            }
        }
        Collections.sort(all);
        throw new MojoExecutionException("there are " + all.size() + " scenarios, and none is named " + own + ": " + all
                + "\nhint: choose one with <scenario>");
    }

    /** Whether a file is a scenario, and not the quick variant of one. */
    private static boolean isScenario(String name) {
        return name.endsWith(SUFFIX) && !name.endsWith("-quick" + SUFFIX);
    }

    private Path jar() throws MojoExecutionException {
        Artifact main = project.getArtifact();
        File file = artifact != null ? artifact : main == null ? null : main.getFile();
        if (file == null) {
            // The goal was called on its own, after an earlier `package`.
            String name = project.getBuild().getFinalName() + "." + project.getPackaging();
            file = new File(project.getBuild().getDirectory(), name);
        }
        if (!file.isFile()) {
            throw new MojoExecutionException("there is no jar to weigh: " + file
                    + "\nhint: bind the goal after `package`, or set the jar with <artifact>");
        }
        return file.toPath().toAbsolutePath();
    }
}
