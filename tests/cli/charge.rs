//! A container's charge: a synthetic one on the screen and against its schema, and typos.

use crate::called::loadline;
use crate::schema::Schema;
use loadline::record::{
    CHARGE_SCHEMA, CachedFileRecord, ChargeDocument, ChargeKind, ChargeRecord, ChargeRow, DoubtRecord, Machine,
    NamedJvm, SlabRecord,
};
use loadline::report::{self, render, summarize_charge};
use serde_json::{Value, json};

const MIB: i64 = 1 << 20;

fn row(kind: ChargeKind, owner: &str, bytes: i64) -> ChargeRow {
    let reclaimable = kind == ChargeKind::PageCache;
    ChargeRow { kind, owner: owner.to_owned(), bytes, reclaimable, ..ChargeRow::default() }
}

fn process(pid: u32, command: &str, mib: i64) -> ChargeRow {
    ChargeRow { pid: Some(pid), ..row(ChargeKind::Anonymous, command, mib * MIB) }
}

/// A container with a JVM, four helpers, a memory-backed spool, and a log.
fn made_up() -> ChargeDocument {
    use ChargeKind::{Kernel, MemoryFiles, PageCache, Rest};
    let helpers = (40..44).map(|pid| process(pid, "tesseract page.png", 42));
    let spool = ChargeRow { files: 500, deleted: 499, ..row(MemoryFiles, "/tmp", 125 * MIB) };
    let names = ChargeRow { reclaimable: true, ..row(Kernel, "file names and inodes", 90 * MIB) };
    let others = [
        row(ChargeKind::Anonymous, "no process found", -2 * MIB),
        spool,
        row(PageCache, "inactive", 60 * MIB),
        row(PageCache, "active", 20 * MIB),
        names,
        row(Kernel, "page tables", 2 * MIB),
        row(Kernel, "others", 1000),
        row(Rest, "not listed by the kernel", MIB),
    ];
    let rows: Vec<ChargeRow> =
        std::iter::once(process(12, "java -jar shop.jar", 94)).chain(helpers).chain(others).collect();
    let usage = rows.iter().map(|row| row.bytes).sum::<i64>() as u64;
    let charge = ChargeRecord {
        usage_bytes: usage,
        anon_bytes: 260 << 20,
        file_bytes: 80 << 20,
        inactive_file_bytes: Some(60 << 20),
        dirty_file_bytes: Some(8 << 20),
        shmem_bytes: 125 << 20,
        kernel_bytes: Some((92 << 20) + 1000),
        swap_bytes: Some(3 << 20),
        limit_bytes: Some(768 << 20),
        version: "v2".to_owned(),
        cgroup: "/kubepods/burstable/pod1-2/8c91".to_owned(),
        processes: 5,
        limit_cgroup: Some("/kubepods/burstable/pod1-2".to_owned()),
        unlisted: vec!["memory".to_owned()],
        rows,
        unread_processes: 1,
        cached_files: vec![CachedFileRecord {
            path: "/var/lib/kubelet/pods/1f0c/volumes/logs/shop-2026-11-28.log".to_owned(),
            bytes: 71 << 20,
            dirty_bytes: 8 << 20,
        }],
        machine_slabs: vec![
            SlabRecord { name: "dentry".to_owned(), bytes: 91 << 20 },
            SlabRecord { name: "ext4_inode_cache".to_owned(), bytes: 12 << 20 },
        ],
    };
    ChargeDocument {
        schema: CHARGE_SCHEMA.to_owned(),
        loadline: "0.1.0".to_owned(),
        taken: "2026-11-28T08:00:00Z".to_owned(),
        command: "loadline account --container 8c91 --json".to_owned(),
        charge,
        peak_bytes: Some(700 << 20),
        oom_kills: 2,
        jvms: vec![NamedJvm { pid: 12, name: "shop.jar".to_owned() }],
        doubts: Vec::<DoubtRecord>::new(),
        machine: Machine { cores: 2, cgroup: "v2".to_owned(), ..Machine::default() },
    }
}

#[test]
fn a_container_is_shown_by_owner_with_its_unreclaimable_part() {
    insta::assert_snapshot!(render(&summarize_charge(&made_up())));
}

#[test]
fn a_cgroup_without_processes_suggests_post_mortem() {
    let mut dead = made_up();
    dead.jvms.clear();
    dead.charge.rows.retain(|row| row.pid.is_none());
    let text = render(&summarize_charge(&dead));
    assert!(text.contains("No process is left") && text.contains("Next: `loadline post-mortem`"), "{text}");
}

#[test]
fn a_charge_document_matches_its_schema() {
    let printed: Value = serde_json::from_str(&report::document(&made_up())).unwrap();
    let schema = Schema::published("charge.schema.json");
    schema.describes(&printed, "charge");
    assert!(schema.accepts_with(&printed, "/peak_bytes", json!(null)), "cgroup v2 has no peak before Linux 5.19");
    assert!(!schema.accepts_with(&printed, "/schema", json!("loadline.account/1")));
}

#[test]
fn a_missing_container_is_rejected() {
    for (words, told) in [
        (&["account", "--cgroup", "/no/such/cgroup"][..], "/no/such/cgroup"),
        (&["account", "--cgroup", "../.."], "../.."),
        (&["account", "--container", "shop"], "`shop` is not a container ID"),
        (&["account", "--container", "00"], "`00` is not a container ID"),
        (&["account", "--pod", "no-such-pod"], "no-such-pod"),
        (&["account", "1", "--container", "8c91"], "cannot be used with"),
        (&["account", "--container", "8c91", "--by", "pool"], "cannot be used with"),
    ] {
        let called = loadline(words);
        // 4: this machine has no cgroups.
        assert!([2, 4].contains(&called.code), "{words:?}: {called:?}");
        assert!(called.code == 4 || called.stderr.contains(told), "{words:?}: {called:?}");
        assert!(called.stdout.is_empty() && !called.stderr.contains("panicked"), "{called:?}");
    }
}
