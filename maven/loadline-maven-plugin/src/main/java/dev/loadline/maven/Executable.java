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

/** Finds the binary: the one that was named, the one on the PATH if it is of the version, the one of a repository. */
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

    /** The program to run; the folder takes a copy of one that cannot be made executable where it lies. */
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
            String what = found == null ? "tells no version" : "is " + found;
            other = "\n" + onPath + " on the PATH " + what + ", and " + version + " is wanted";
        }
        String coordinates = "dev.loadline:loadline:exe:" + Platform.classifier() + ":" + version;
        try {
            ArtifactRequest request = new ArtifactRequest(new DefaultArtifact(coordinates), ofPlugins(), null);
            File file = repositories.resolveArtifact(session.getRepositorySession(), request).getArtifact().getFile();
            return Program.runnable(file, folder);
        } catch (ArtifactResolutionException cause) {
            throw new MojoExecutionException("the binary is not to be had: " + cause.getMessage() + other
                    + "\nhint: put " + coordinates + " into a plugin repository of this build, `loadline` on the PATH,"
                    + " or name the file: -Dloadline.executable=FILE", cause);
        } catch (IOException cause) {
            throw new MojoExecutionException("cannot make the binary executable: " + cause.getMessage(), cause);
        }
    }

    private Path named(File file, String version) throws MojoExecutionException {
        if (!file.isFile() || !file.canExecute()) {
            String what = file.isFile() ? "cannot be executed" : "does not exist";
            throw new MojoExecutionException("the executable " + file + " " + what
                    + "\nhint: name another by -Dloadline.executable=FILE, or leave it out for that of a repository");
        }
        String found = Program.version(file.toPath());
        if (found != null && !found.equals(version)) {
            log.warn(file + " is Loadline " + found + ", and this plugin was made for " + version);
        }
        return file.toPath().toAbsolutePath();
    }

    /**
     * The repositories of plugins: the binary lies in the one that this plugin came from. Repositories of the project's
     * libraries are not asked, because their files do not run in a build.
     */
    private List<RemoteRepository> ofPlugins() {
        return project.getRemotePluginRepositories();
    }
}
