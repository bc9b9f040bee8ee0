//! What a mark and a phase of a trial ask of the processes of its subject.

use super::conductor::Trialling;
use crate::doubt::Doubt;
use crate::scenario::Kind;
use crate::weigh::{Part, Taken, Used, Weigh, same_kind, sum, sum_doubt};

impl Trialling<'_> {
    /// Weighs the subject: the process that serves and, where all form it, the others with it.
    pub(crate) fn weigh(&mut self, weigh: Weigh, mark: &str) -> Taken {
        let taken = weigh.take(&mut self.watched, mark, &mut self.trial.observer, self.doubts);
        let Some(others) = &mut self.others else { return taken };
        let pid = self.watched.process.pid();
        let living = self.running.processes();
        others.find(&living, &format!("mark {mark}"), self.doubts);
        let name = living.iter().find(|process| process.pid == pid).map(|process| process.name.clone());
        let main = Part { pid, name: name.unwrap_or_default(), is_jvm: self.watched.kind == Kind::Jvm, taken };
        let mut parts = vec![main];
        parts.extend(others.weigh(weigh, mark, self.doubts));
        let mut taken = sum(parts);
        if let (Some(account), Some(bytes)) = (&mut taken.mark.account, others.observer_bytes()) {
            account.observer_bytes = Some(account.observer_bytes.unwrap_or(0).saturating_add(bytes));
        }
        let shared = sum_doubt(&taken.mark);
        let is_news = |doubt: &Doubt| self.doubts.iter().all(|known| !same_kind(known, doubt));
        let news = shared.filter(is_news);
        self.doubts.extend(news);
        taken
    }

    /// What the others have used up so far; nothing where only one process is weighed.
    pub(crate) fn used_by_others(&mut self) -> Used {
        let Some(others) = &mut self.others else { return Used::default() };
        others.find(&self.running.processes(), "the end of a phase", self.doubts);
        others.used()
    }
}
