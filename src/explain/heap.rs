//! Groups a heap dump by holder: the static fields, threads, and pools that keep objects reachable.

use crate::error::Result;
use crate::record::{HeldClassRecord, HeldHeapRecord, HolderRecord, Jvm};
use loadline_heap_dump::{Header, Holder, Layout, References, Settings, Summary, read};
use std::fs::File;

const HOLDERS_MAX: usize = 40;
const CLASSES_MAX: usize = 5;

/// The dump's objects by holder, and the reason if the dump was not fully read.
pub(super) fn held(dump: &File, jvm: Option<&Jvm>) -> Result<(HeldHeapRecord, Option<String>)> {
    let settings = Settings { layout: layout(jvm), holders_max: HOLDERS_MAX, ..Settings::default() };
    let summary = read(dump, &settings)?;
    Ok((record(&summary), summary.incomplete))
}

fn record(summary: &Summary) -> HeldHeapRecord {
    HeldHeapRecord {
        live_bytes: summary.live.bytes,
        objects: summary.live.objects,
        covered_bytes: (summary.covered_by_name() * summary.live.bytes as f64) as u64,
        holders: summary.holders.iter().map(holder_record).collect(),
    }
}

fn holder_record(holder: &Holder) -> HolderRecord {
    let name = Holder { path: Vec::new(), ..holder.clone() }.to_string();
    let steps = holder.path.iter().map(ToString::to_string);
    let classes = holder.consists_of.iter().take(CLASSES_MAX).map(|of| HeldClassRecord {
        name: of.class.clone(),
        instances: of.amount.objects,
        bytes: of.amount.bytes,
    });
    HolderRecord {
        path: std::iter::once(name.clone()).chain(steps).collect(),
        name,
        retained_bytes: holder.retained.bytes,
        objects: holder.retained.objects,
        classes: classes.collect(),
    }
}

/// This JVM's object layout, from its nondefault flags.
fn layout(jvm: Option<&Jvm>) -> Layout {
    let flags = jvm.and_then(|jvm| jvm.flags.as_deref()).unwrap_or_default();
    let has = |flag: &str| flags.iter().any(|of| of == flag);
    let collector = jvm.and_then(|jvm| jvm.collector.as_deref());
    let whole = has("-XX:-UseCompressedOops") || collector == Some("Z");
    // JDK 27 defaults to compact headers.
    let is_new = jvm.and_then(Jvm::release).is_some_and(|release| release[0] >= 27);
    let header = match () {
        () if has("-XX:+UseCompactObjectHeaders") => Header::Compact,
        () if is_new && !has("-XX:-UseCompactObjectHeaders") => Header::Compact,
        () if has("-XX:-UseCompressedClassPointers") => Header::Wide,
        () => Header::Narrow,
    };
    let aligned = flags.iter().find_map(|of| of.strip_prefix("-XX:ObjectAlignmentInBytes=")?.parse().ok());
    Layout {
        references: if whole { References::Whole } else { References::Compressed },
        header,
        alignment_bytes: aligned.unwrap_or(8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_layout_follows_the_flags() {
        let jvm = |collector: &str, flags: &[&str]| Jvm {
            collector: Some(collector.to_owned()),
            flags: Some(flags.iter().map(|flag| (*flag).to_owned()).collect()),
            ..Jvm::default()
        };
        assert_eq!(layout(None), Layout::default());
        assert_eq!(layout(Some(&jvm("G1", &["-XX:+UseSerialGC"]))), Layout::default());
        assert_eq!(layout(Some(&jvm("Z", &[]))).references, References::Whole);
        let compact = layout(Some(&jvm("G1", &["-XX:+UseCompactObjectHeaders", "-XX:ObjectAlignmentInBytes=16"])));
        assert_eq!((compact.header, compact.alignment_bytes), (Header::Compact, 16));
        let new = Jvm { version: Some("27.0.1+8".to_owned()), ..jvm("G1", &[]) };
        assert_eq!(layout(Some(&new)).header, Header::Compact);
        let whole = layout(Some(&jvm("G1", &["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"])));
        assert_eq!((whole.references, whole.header), (References::Whole, Header::Wide));
    }
}
