package dev.loadline.maven;

import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.apache.maven.execution.MavenSession;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.plugin.logging.Log;
import org.apache.maven.project.MavenProject;
import org.eclipse.aether.RepositorySystem;
import org.eclipse.aether.artifact.DefaultArtifact;
import org.eclipse.aether.repository.RemoteRepository;
import org.eclipse.aether.resolution.ArtifactRequest;
import org.eclipse.aether.resolution.ArtifactResolutionException;

/** Finds the binary: the configured one, one on the PATH with the right version, or the artifact from a repository. */
final class Executable {
    private final RepositorySystem repositories;
    private final MavenSession session;
    private final MavenProject project;
    private final Log log;

    Executable(RepositorySystem repositories, MavenSession session, MavenProject project, Log log) {
        this.repositories = repositories;
        this.session = session;
        this.project = project;
        this.log = log;
    }

    /** The program to run. If its file cannot be made executable in place, it is copied to the folder. */
    Path find(File named, String version, Path folder) throws MojoExecutionException {
        if (named != null) {
            return named(named, version);
        }
        Path onPath = Program.onPath("loadline");
        String other = "";
        if (onPath != null) {
            String found = Program.version(onPath);
            if (version.equals(found)) {
                return onPath;
            }
            String what = found == null ? "has no known version" : "is " + found;
            other = "\n" + onPath + " on the PATH " + what + ", but the plugin needs " + version;
        }
        String coordinates = "dev.loadline:loadline:exe:" + Platform.classifier() + ":" + version;
        try {
            ArtifactRequest request = new ArtifactRequest(new DefaultArtifact(coordinates), ofPlugins(), null);
            File file = repositories.resolveArtifact(session.getRepositorySession(), request).getArtifact().getFile();
            return Program.runnable(file, folder);
        } catch (ArtifactResolutionException cause) {
            throw new MojoExecutionException("cannot get the binary: " + cause.getMessage() + other
                    + "\nhint: put " + coordinates + " in a plugin repository of this build,"
                    + " put `loadline` on the PATH, or set -Dloadline.executable=FILE", cause);
        } catch (IOException cause) {
            throw new MojoExecutionException("cannot make the binary executable: " + cause.getMessage(), cause);
        }
    }

    private Path named(File file, String version) throws MojoExecutionException {
        if (!file.isFile() || !file.canExecute()) {
            String what = file.isFile() ? "cannot be executed" : "does not exist";
            throw new MojoExecutionException("the executable " + file + " " + what
                    + "\nhint: set -Dloadline.executable to another file,"
                    + " or remove it to use the binary from a repository");
        }
        String found = Program.version(file.toPath());
        if (found != null && !found.equals(version)) {
            log.warn(file + " is Loadline " + found + ", but this plugin is for " + version);
        }
        return file.toPath().toAbsolutePath();
    }

    /**
     * The plugin repositories, because the binary is in the one that this plugin came from. The repositories of the
     * project's libraries are left out, because a build must not run their files.
     */
    private List<RemoteRepository> ofPlugins() {
        return project.getRemotePluginRepositories();
    }
}
