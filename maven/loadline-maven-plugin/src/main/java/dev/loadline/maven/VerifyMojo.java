package dev.loadline.maven;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.plugin.MojoFailureException;
import org.apache.maven.plugins.annotations.LifecyclePhase;
import org.apache.maven.plugins.annotations.Mojo;

/** Fails the build if a budget is exceeded or the server could not be weighed. Undecided budgets are warnings. */
@Mojo(name = "verify", defaultPhase = LifecyclePhase.VERIFY, threadSafe = true)
public final class VerifyMojo extends LoadlineMojo {
    /** Loadline's exit code if a budget is exceeded. */
    private static final int BROKEN = 1;

    @Override
    public void execute() throws MojoExecutionException, MojoFailureException {
        if (skippedBy() != null) {
            getLog().info("skipped: " + skippedBy() + " is set");
            return;
        }
        Outcome outcome = outcome();
        if (outcome.skipped != null) {
            getLog().info("nothing was weighed: " + outcome.skipped);
            return;
        }
        if (outcome.exit != 0 && outcome.exit != BROKEN) {
            String what = "the server could not be weighed";
            String code = outcome.exit == Outcome.NOT_STARTED ? "" : " (loadline: exit code " + outcome.exit + ")";
            throw new MojoExecutionException(what + code + ":\n" + outcome.words);
        }
        Budgets budgets = budgets();
        budgets.undecided.forEach(budget -> getLog().warn("undecided: " + budget));
        if (outcome.exit == BROKEN) {
            throw new MojoFailureException(told(budgets));
        }
        if (budgets.count == 0) {
            getLog().warn("there are no budgets, so the build cannot fail: set one with <budgets> or in the scenario");
        }
        int kept = budgets.count - budgets.undecided.size();
        getLog().info(several(kept, "budget") + " met, " + budgets.undecided.size() + " undecided");
    }

    private Outcome outcome() throws MojoExecutionException {
        Path file = outcomeFile();
        if (!Files.exists(file)) {
            throw new MojoExecutionException("there is nothing to verify: the goal `weigh` did not write " + file
                    + "\nhint: run both goals, `weigh` and `verify`, in one execution");
        }
        try {
            return Outcome.read(file);
        } catch (IOException cause) {
            throw new MojoExecutionException("cannot read " + file + ": " + cause.getMessage(), cause);
        }
    }

    private Budgets budgets() throws MojoExecutionException {
        try {
            return Budgets.read(reportFile);
        } catch (IOException cause) {
            throw new MojoExecutionException("cannot read the budgets: " + cause.getMessage(), cause);
        }
    }

    /** The exceeded budgets, and where to find the report. */
    private String told(Budgets budgets) {
        // With `undecided` set to `fail`, undecided budgets cause this exit code, too.
        List<String> which = budgets.broken.isEmpty() ? budgets.undecided : budgets.broken;
        String verdict = budgets.broken.isEmpty() ? " undecided, which counts as broken" : " broken";
        StringBuilder told = new StringBuilder(several(which.size(), "budget") + verdict + ":");
        which.forEach(budget -> told.append("\n  ").append(budget));
        Path comment = outputDirectory.toPath().resolve("comment.md");
        if (Files.exists(comment)) {
            try {
                // Its hidden markers are for the scripts that post it.
                String text = Files.readString(comment).replaceAll("(?m)^<!-- .* -->\\R", "");
                told.append("\n\n").append(text.trim()).append('\n');
            } catch (IOException cause) {
                getLog().warn("cannot read " + comment + ": " + cause.getMessage());
            }
        }
        return told.append("\nreport: ").append(outputDirectory.toPath().resolve("report.html")).toString();
    }

    private static String several(int count, String what) {
        return count + " " + what + (count == 1 ? "" : "s");
    }
}
