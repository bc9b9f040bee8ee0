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

/** Weighs the project's server under load. Fails no build, so that what follows is cleaned up: `verify` does. */
@Mojo(name = "weigh", defaultPhase = LifecyclePhase.INTEGRATION_TEST, threadSafe = true)
public final class WeighMojo extends LoadlineMojo {
    /** From so many trials on an interval is one of the centre. */
    private static final int TRIALS = 5;
    /** By then HotSpot has given back what its compilers worked with, which differs by 16 MiB from JVM to JVM. */
    private static final String REST = "12s";
    /** Servers that are weighed beside each other disturb each other, however many modules are built at once. */
    private static final Object ONE_AT_A_TIME = new Object();
    private static final String SUFFIX = ".loadline.yaml";

    @Parameter(defaultValue = "${session}", readonly = true, required = true)
    private MavenSession session;

    @Parameter(defaultValue = "${plugin}", readonly = true, required = true)
    private PluginDescriptor plugin;

    /**
     * What is run: a file `NAME.loadline.yaml`, or a folder with one of its name. Where left out, the one that stands
     * in the project's folder or in `src/test/loadline`; where there is none, the project's jar is weighed as it is.
     */
    @Parameter(property = "loadline.scenario")
    private File scenario;

    /** What must not be exceeded, beside what the scenario says, such as `rss.loaded&lt;=160MiB`. */
    @Parameter(property = "loadline.budgets")
    private List<String> budgets = new ArrayList<>();

    /** Trials, a fresh JVM each; as the scenario says, or 5 without one. */
    @Parameter(property = "loadline.trials")
    private Integer trials;

    /** What is compared against: an archive of an earlier run, or a configuration of the scenario. */
    @Parameter(property = "loadline.baseline")
    private String baseline;

    /** What an undecided budget is: `pass`, with a warning, or `fail`. */
    @Parameter(property = "loadline.undecided")
    private String undecided;

    /**
     * Further options of Loadline. What follows a `--` are arguments of the jar, or, where `{artifact}` is among them,
     * the whole command that starts the server.
     */
    @Parameter(property = "loadline.arguments")
    private List<String> arguments = new ArrayList<>();

    /** What is weighed, and what `{artifact}` stands for: the project's jar where left out. */
    @Parameter(property = "loadline.artifact")
    private File artifact;

    /** The binary. Where left out: `loadline` of this version on the PATH, else the artifact of a repository. */
    @Parameter(property = "loadline.executable")
    private File executable;

    /** The version of the binary; that of this plugin where left out. */
    @Parameter(property = "loadline.version")
    private String binaryVersion;

    /** The JDK that runs the server, by what a toolchain says of itself, such as `version`. */
    @Parameter
    private Map<String, String> jdkToolchain;

    /** Whether a machine on which nothing can be weighed is an error. */
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
            why = "this module makes no server (its packaging is pom)";
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

    /** Why nothing can be weighed on this machine; null where something can. */
    private String unsupported() throws MojoExecutionException {
        boolean knows = executable != null ? Platform.isLinux() : Platform.classifier() != null;
        if (knows) {
            return null;
        }
        String why = "Loadline weighs on Linux (x86_64, aarch64), and this is " + Platform.name();
        if (failIfUnsupported) {
            throw new MojoExecutionException(why + "\nhint: leave out failIfUnsupported, and let CI weigh");
        }
        getLog().warn(why + ": no budget is checked here");
        return why;
    }

    /** What an earlier build left would be taken for this one's. */
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
            throw new MojoExecutionException("cannot make " + folder + " ready: " + cause, cause);
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

    /** The result as a document, beside the summary that the log has. */
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

    /** From the project's folder, with the JDK that the build is to use, or runs on. */
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
                throw new MojoExecutionException("no toolchain fits jdkToolchain " + jdkToolchain
                        + "\nhint: name such a JDK in ~/.m2/toolchains.xml");
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

    /** The command line, for a scenario or for a jar. */
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
            // What the user says about the same things comes last, and may be a command behind `--`.
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

        /** Whether something says `{artifact}`, without which the option would have no effect. */
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

    /** The scenario that lies where scenarios lie; null where there is none. */
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
                + "\nhint: choose one of them by <scenario>");
    }

    /** Whether a file is one, and not the small version that stands beside one. */
    private static boolean isScenario(String name) {
        return name.endsWith(SUFFIX) && !name.endsWith("-quick" + SUFFIX);
    }

    private Path jar() throws MojoExecutionException {
        Artifact main = project.getArtifact();
        File file = artifact != null ? artifact : main == null ? null : main.getFile();
        if (file == null) {
            // The goal was called by itself, after an earlier `package`.
            String name = project.getBuild().getFinalName() + "." + project.getPackaging();
            file = new File(project.getBuild().getDirectory(), name);
        }
        if (!file.isFile()) {
            throw new MojoExecutionException("there is no jar to weigh: " + file
                    + "\nhint: bind the goal after `package`, or name the jar by <artifact>");
        }
        return file.toPath().toAbsolutePath();
    }
}
