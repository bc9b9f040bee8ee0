//! A paragraph for a change request: the setting, its saving and cost, the evidence, and open questions.

use super::facts::machine_text;
use super::tune_answer::{as_is_trial, costs, objective_words, proof, set_told};
use crate::record::{Document, Jvm, TuneOutcome, TuneRecord};
use crate::units::several;

/// The paragraph's sentences; `None` if nothing was confirmed. Text in backticks is literal.
pub(crate) fn request(document: &Document, tune: &TuneRecord) -> Option<Vec<String>> {
    if tune.outcome != TuneOutcome::Proved || tune.changes.is_empty() {
        return None;
    }
    let proof = proof(tune)?;
    let of = &document.conditions;
    let day = of.started.split('T').next().unwrap_or_default();
    let mut text = vec![set_told(tune)];
    text.extend(costs(tune).map(|costs| format!("Its cost: {costs}.")));
    if !tune.target.is_empty() {
        text.push(format!("Target, met in every trial that counts: {}.", tune.target.join(", ")));
    }
    text.push(format!("Objective: {}.", objective_words(tune.objective).1));
    text.push(format!(
        "Measured on {day} with loadline {} in {proof}. The tuning ran {} in total; those that chose these settings \
            are not included.",
        of.loadline,
        several(u64::from(tune.trials), "trial")
    ));
    text.push(format!("Load: {}.", of.load.join("; ")));
    let jvm = as_is_trial(&document.trials).and_then(|trial| trial.jvm.as_ref()).and_then(jvm_words);
    text.extend(jvm.map(|jvm| format!("JVM: {jvm}.")));
    text.push(format!("Machine: {}.", machine_text(&of.machine)));
    text.push(format!(
        "Repeat the tuning for a different load, machine, or JDK (including JDK updates): \
        `{}`.",
        of.command
    ));
    Some(text)
}

/// `OpenJDK 64-Bit Server VM 25.0.3+9-LTS, G1 GC, glibc 2.36`.
fn jvm_words(jvm: &Jvm) -> Option<String> {
    let name: Vec<&str> = [&jvm.name, &jvm.version].into_iter().flatten().map(String::as_str).collect();
    let collector = jvm.collector.as_ref().map(|collector| format!("{collector} GC"));
    let parts = [Some(name.join(" ")).filter(|name| !name.is_empty()), collector, jvm.allocator.clone()];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
