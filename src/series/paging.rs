//! Prepares the page cache before each trial of a search: drops the subject's file pages, so that it pays for them, or
//! lets another cgroup hold them.

use crate::clock::Clock;
use crate::error::Result;
use crate::kernel::read_ahead;
use crate::observe::classes;
use crate::record::{ClassesRecord, Trial};
use crate::scenario::{Configuration, Jdk, Pages, Scenario};
use crate::subject::{FoundJdk, PrivateJdk, file_pages, jdk, private_jdk};
use crate::trial::{Event, Sink};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The files that a subject maps or reads, and its JDK.
pub(super) struct Paging {
    files: BTreeSet<PathBuf>,
    /// Directories that the command names, such as those of its class path.
    folders: Vec<PathBuf>,
    jdk: Option<FoundJdk>,
    private: Option<PrivateJdk>,
    /// The subject's image; its files are known only after a trial.
    image: Option<String>,
    /// Whether a trial has shown the files.
    learned: bool,
    clock: Clock,
}

impl Paging {
    /// The files known before the first trial: those of the JDK, and those named in the command.
    pub(super) fn of(
        scenario: &Scenario,
        configuration: &Configuration,
        jdks: &[FoundJdk],
        clock: Clock,
    ) -> Result<Self> {
        let image = scenario.subject.image.as_ref().map(|image| image.name.clone());
        let (files, folders) = Default::default();
        let unknown = Self { files, folders, jdk: None, private: None, image, learned: false, clock };
        if unknown.image.is_some() {
            return Ok(unknown);
        }
        let jdk = jdk::run_by(&scenario.subject, configuration.jdk.as_ref(), jdks, clock)?;
        let mut files: BTreeSet<PathBuf> = jdk.iter().flat_map(|jdk| file_pages::of_jdk(&jdk.home)).collect();
        let folder = scenario.subject.dir.as_deref().unwrap_or(Path::new("."));
        let words = scenario.subject.command.iter().flat_map(|word| word.split(':')).filter(|word| !word.is_empty());
        let words = words.map(|word| folder.join(word)).chain(configuration.code.clone());
        let words = words.chain(scenario.subject.artifact.clone());
        let (folders, rest): (Vec<PathBuf>, Vec<PathBuf>) = words.partition(|word| word.is_dir());
        files.extend(rest.into_iter().filter(|file| file.is_file()));
        Ok(Self { files, folders, jdk, ..unknown })
    }

    /// Makes the pages cold or warm. Reports pages that cannot be dropped; the trial's charge also shows them.
    pub(super) fn prepare(&self, pages: Pages, sink: &mut dyn Sink) {
        let files: Vec<PathBuf> = self.files.iter().cloned().collect();
        if let Some(image) = self.image.as_ref().filter(|_| self.learned && files.is_empty()) {
            sink.receive(&Event::Warning(&format!(
                "the files of {image} could not be found (its storage is not overlay), so their pages were not evicted"
            )));
        }
        match pages {
            Pages::Cold => {
                let evicted = file_pages::evict(&files, self.clock);
                if let Some((file, why)) = evicted.refused.first() {
                    sink.receive(&Event::Warning(&format!("pages of {} may stay in memory: {why}", file.display())));
                }
            }
            Pages::Warm => drop(file_pages::read_in(&files)),
        }
    }

    /// Classes of the JDK, of the jars that a trial had open, and of the class path's directories.
    pub(super) fn classes(&self, trial: &Trial) -> Option<ClassesRecord> {
        let home = self.home(trial)?;
        let homes = [Some(home.as_path()), self.private.as_ref().map(PrivateJdk::home)];
        let of_jdk = |file: &Path| homes.iter().flatten().any(|home| file.starts_with(home));
        let jars = trial.files.iter().map(Path::new).filter(|file| file.extension().is_some_and(|end| end == "jar"));
        let in_jars: u64 = jars.filter(|jar| !of_jdk(jar)).filter_map(|jar| classes::in_jar(jar).ok()).sum();
        let in_folders: u64 = self.folders.iter().map(|folder| classes::in_folder(folder)).sum();
        let image = classes::in_image(&home.join("lib/modules")).ok()?;
        Some(ClassesRecord { jdk: image, application: in_jars + in_folders })
    }

    /// The kernel's read-ahead size on the disk of the JDK in use.
    pub(super) fn read_ahead_bytes(&self, trial: &Trial) -> Option<u64> {
        let private = self.private.as_ref().map(|copy| copy.home().to_path_buf());
        read_ahead::of(&private.or_else(|| self.home(trial))?.join("lib/modules"))
    }

    /// The requested JDK, or the image's, as seen in a trial.
    fn home(&self, trial: &Trial) -> Option<PathBuf> {
        let in_image = || self.image.as_ref().and_then(|_| home_in_image(&trial.files));
        self.jdk.as_ref().map(|jdk| jdk.home.clone()).or_else(in_image)
    }

    /// Records the files that a trial had mapped or open.
    pub(super) fn learn(&mut self, trial: &Trial) {
        self.files.extend(trial.files.iter().map(PathBuf::from));
        self.learned |= trial.jvm.is_some();
    }

    /// Before any trial: whether other cgroups are known to hold pages of the JDK, so that dropping them is not enough.
    pub(super) fn jdk_is_held(&self) -> bool {
        let jdk = self.jdk.as_ref().filter(|_| self.private.is_none());
        jdk.is_some_and(|jdk| file_pages::held_by_others(&file_pages::of_jdk(&jdk.home), &[]).are_there())
    }

    /// Whether a private copy could replace the JDK that other cgroups hold.
    pub(super) fn can_go_private(&self) -> bool {
        self.jdk.is_some() && self.private.is_none()
    }

    /// Gives subsequent trials a private JDK. Does nothing if they already have one, or if the JDK is unknown. Errors:
    /// `Machine` if there is no room for a copy; `Interrupted`.
    pub(super) fn go_private(
        &mut self,
        archive: &Path,
        interrupted: &dyn Fn() -> bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let Some(jdk) = self.jdk.as_ref().filter(|_| self.private.is_none()) else { return Ok(()) };
        sink.receive(&Event::Note("  other processes hold the JDK's file pages; the next trials use a copy"));
        let copy = PrivateJdk::copy(jdk, &private_jdk::places(Some(archive)), self.clock, interrupted)?;
        self.files.extend(file_pages::of_jdk(copy.home()));
        self.private = Some(copy);
        Ok(())
    }

    /// The JDK that replaces the requested one.
    pub(super) fn private_jdk(&self) -> Option<Jdk> {
        self.private.as_ref().map(|copy| Jdk::Home(copy.home().to_owned()))
    }
}

/// The image's JDK, from the path of the modules file that a trial had open.
fn home_in_image(files: &[String]) -> Option<PathBuf> {
    let modules = files.iter().map(Path::new).find(|file| file.ends_with("lib/modules"))?;
    Some(modules.parent()?.parent()?.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Jvm;
    use crate::scenario::parse;
    use std::fs::{create_dir_all, write};

    /// The files that a subject with this command is known to read before its first trial.
    fn paging(folder: &Path, command: &str) -> Paging {
        let text = format!(
            "name: x\nsubject: {{command: {command}}}\nconfigurations: {{a: {{}}}}\n\
             load: [steady: {{closed: {{connections: 1, requests: 1}}, get: /}}]\n"
        );
        let scenario = parse(&text, folder, &[17]).unwrap();
        Paging::of(&scenario, &scenario.configurations[0], &[], Clock::start()).unwrap()
    }

    #[test]
    fn files_and_directories_are_found_in_the_command() {
        let place = tempfile::TempDir::new().unwrap();
        create_dir_all(place.path().join("classes")).unwrap();
        for file in ["one.jar", "two.jar", "other.jar"] {
            write(place.path().join(file), "x").unwrap();
        }
        let paging = paging(place.path(), "[./serve, -cp, 'one.jar:classes::two.jar', absent.jar]");
        let names: Vec<_> = paging.files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["one.jar", "two.jar"]);
        assert!(paging.folders.len() == 1 && paging.folders[0].ends_with("classes"), "{:?}", paging.folders);
        assert!(!paging.can_go_private() && !paging.jdk_is_held(), "without a known JDK, there is no private copy");
        assert!(paging.private_jdk().is_none());
    }

    #[test]
    fn files_read_by_a_trial_are_added() {
        let place = tempfile::TempDir::new().unwrap();
        let mut paging = paging(place.path(), "[./serve]");
        let files = vec!["/x/libjvm.so".to_owned()];
        paging.learn(&Trial { files: files.clone(), ..Trial::new("a", 0, 0) });
        assert!(paging.files.contains(Path::new("/x/libjvm.so")) && !paging.learned, "no JVM was running");
        paging.learn(&Trial { jvm: Some(Jvm::default()), ..Trial::new("a", 0, 0) });
        assert!(paging.learned);
        paging.learn(&Trial::new("a", 0, 0));
        assert!(paging.learned, "a later trial without a JVM changes nothing");
    }

    #[test]
    fn the_jdk_of_an_image_is_found_from_its_modules_file() {
        let files = ["/opt/app.jar", "/opt/java/lib/modules", "/usr/lib/libc.so"].map(str::to_owned);
        assert_eq!(home_in_image(&files), Some(PathBuf::from("/opt/java")));
        assert_eq!(home_in_image(&files[..1]), None);
    }
}
