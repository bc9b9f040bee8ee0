//! Makes the paths of a shared plan or scenario relative to its directory, so that its text is location-independent.

use super::{Arrivals, Body, Configuration, LoadPlan, PhaseKind, Scenario, Schedule, Subject, TrialPlan};
use std::path::{Path, PathBuf};

impl TrialPlan {
    /// The plan to share: paths below this directory become relative. The path of a JDK stays unchanged, because other
    /// machines have their own.
    pub fn seen_from(mut self, folder: &Path) -> Self {
        self.each_path(&mut |path| name_from(path, folder));
        self
    }

    /// The plan to execute: relative paths become paths below this directory.
    pub fn put_into(mut self, folder: &Path) -> Self {
        self.each_path(&mut |path| put(path, folder));
        self
    }

    fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        each_path(&mut self.subject, std::slice::from_mut(&mut self.configuration), &mut self.load, change);
    }
}

impl Scenario {
    /// The scenario to share, as [`TrialPlan::seen_from`].
    pub fn seen_from(mut self, folder: &Path) -> Self {
        self.each_path(&mut |path| name_from(path, folder));
        self
    }

    /// The scenario to execute, as [`TrialPlan::put_into`].
    pub fn put_into(mut self, folder: &Path) -> Self {
        self.each_path(&mut |path| put(path, folder));
        self
    }

    /// The first path that leads out of a shared scenario's directory, and must therefore exist where the scenario is
    /// executed.
    pub fn path_outside(&self) -> Option<PathBuf> {
        let mut outside = None;
        self.clone().each_path(&mut |path| {
            if path.is_absolute() || path.starts_with("..") {
                outside.get_or_insert_with(|| path.clone());
            }
        });
        outside
    }

    fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        each_path(&mut self.subject, &mut self.configurations, &mut self.load, change);
    }
}

fn name_from(path: &mut PathBuf, folder: &Path) {
    if let Ok(below) = path.strip_prefix(folder) {
        *path = if below.as_os_str().is_empty() { PathBuf::from(".") } else { below.to_owned() };
    }
}

fn put(path: &mut PathBuf, folder: &Path) {
    *path = if *path == Path::new(".") { folder.to_owned() } else { folder.join(&*path) }
}

fn each_path(
    subject: &mut Subject,
    configurations: &mut [Configuration],
    load: &mut LoadPlan,
    change: &mut dyn FnMut(&mut PathBuf),
) {
    subject.dir.iter_mut().chain(&mut subject.socket).chain(&mut subject.artifact).for_each(&mut *change);
    if let Some(tls) = &mut subject.tls {
        [&mut tls.ca, &mut tls.cert, &mut tls.key].into_iter().flatten().for_each(&mut *change);
    }
    for configuration in configurations {
        configuration.code.iter_mut().for_each(&mut *change);
        // The loader looks up a name without a directory.
        if let Some(library) = configuration.preload.as_mut().filter(|library| library.contains('/')) {
            let mut path = PathBuf::from(library.strip_prefix("./").unwrap_or(library));
            change(&mut path);
            let named = path.to_string_lossy();
            *library = if named.contains('/') { named.into_owned() } else { format!("./{named}") };
        }
    }
    for phase in load.iter_mut() {
        match &mut phase.kind {
            PhaseKind::Work(work) => {
                if let Schedule::Open { arrivals: Arrivals::File(file), .. } = &mut work.schedule {
                    change(file);
                }
                let requests = std::iter::once(&mut work.request).chain(&mut work.others);
                requests.for_each(|request| {
                    if let Body::File(file) = &mut request.body {
                        change(file);
                    }
                });
            }
            PhaseKind::Driver(driver) => driver.dir.iter_mut().for_each(&mut *change),
            PhaseKind::Own(_) | PhaseKind::Idle(_) => {}
        }
    }
}
