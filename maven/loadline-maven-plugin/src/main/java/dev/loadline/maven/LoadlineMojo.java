package dev.loadline.maven;

import java.io.File;
import java.nio.file.Path;
import org.apache.maven.plugin.AbstractMojo;
import org.apache.maven.plugins.annotations.Parameter;
import org.apache.maven.project.MavenProject;

/** The parameters that both goals share. */
abstract class LoadlineMojo extends AbstractMojo {
    @Parameter(defaultValue = "${project}", readonly = true, required = true)
    MavenProject project;

    /** Skips both goals. */
    @Parameter(property = "loadline.skip", defaultValue = "false")
    private boolean skip;

    /** Skips both goals, like Failsafe. */
    @Parameter(property = "skipITs", defaultValue = "false")
    private boolean skipITs;

    /** Skips both goals, like Surefire and Failsafe. */
    @Parameter(property = "skipTests", defaultValue = "false")
    private boolean skipTests;

    /** Skips both goals, like Surefire and Failsafe. */
    @Parameter(property = "maven.test.skip", defaultValue = "false")
    private boolean skipAllTests;

    /** Directory for the archive, report.html, result.json, and comment.md. */
    @Parameter(property = "loadline.outputDirectory", defaultValue = "${project.build.directory}/loadline")
    File outputDirectory;

    /** The budgets as JUnit XML, in the place where CI systems look for test results. */
    @Parameter(
            property = "loadline.reportFile",
            defaultValue = "${project.build.directory}/loadline-reports/TEST-loadline.xml")
    File reportFile;

    /** The option that skips this goal; null if none is set. */
    String skippedBy() {
        if (skip) {
            return "loadline.skip";
        }
        if (skipITs) {
            return "skipITs";
        }
        if (skipTests) {
            return "skipTests";
        }
        return skipAllTests ? "maven.test.skip" : null;
    }

    /** The file through which `weigh` passes its outcome to `verify`. */
    Path outcomeFile() {
        return outputDirectory.toPath().resolve("outcome.properties");
    }
}
