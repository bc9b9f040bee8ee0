package dev.loadline.maven;

import java.io.File;
import java.nio.file.Path;
import org.apache.maven.plugin.AbstractMojo;
import org.apache.maven.plugins.annotations.Parameter;
import org.apache.maven.project.MavenProject;

/** What both goals share: whether anything is to be done, and where the result lies. */
abstract class LoadlineMojo extends AbstractMojo {
    @Parameter(defaultValue = "${project}", readonly = true, required = true)
    MavenProject project;

    /** Nothing is weighed, and nothing fails. */
    @Parameter(property = "loadline.skip", defaultValue = "false")
    private boolean skip;

    /** As for Failsafe. */
    @Parameter(property = "skipITs", defaultValue = "false")
    private boolean skipITs;

    /** As for Surefire and Failsafe. */
    @Parameter(property = "skipTests", defaultValue = "false")
    private boolean skipTests;

    /** As for Surefire and Failsafe. */
    @Parameter(property = "maven.test.skip", defaultValue = "false")
    private boolean skipAllTests;

    /** Folder of what a weighing leaves: the archive, report.html, result.json, comment.md. */
    @Parameter(property = "loadline.outputDirectory", defaultValue = "${project.build.directory}/loadline")
    File outputDirectory;

    /** The budgets as JUnit XML, where CI systems look for the results of tests. */
    @Parameter(
            property = "loadline.reportFile",
            defaultValue = "${project.build.directory}/loadline-reports/TEST-loadline.xml")
    File reportFile;

    /** The option that asks for nothing to be done; null where none does. */
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

    /** Where one goal tells the other how it went. */
    Path outcomeFile() {
        return outputDirectory.toPath().resolve("outcome.properties");
    }
}
