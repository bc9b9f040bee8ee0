//! `loadline advise`: an upper bound on the heap before a collection, the known live set after one, and never less than
//! the observed RSS.

use crate::invocation::{Call, newest};
use crate::standing::{LaunchPlan, Standing};
use crate::truth::truth;
use loadline::record::{AdviceConfidence, AdviceDocument, AdvicePart, AdviceRecord};

const MIB: u64 = 1 << 20;

fn advice(subject: &Standing) -> AdviceRecord {
    let ran = Call::verb(&format!("advise {} --json", subject.pid())).beside().run().expect(0);
    subject.runs_on();
    let document: AdviceDocument = serde_json::from_str(&ran.stdout).unwrap();
    let [advice] = document.advice.try_into().unwrap();
    advice
}

#[test]
fn the_live_set_is_an_upper_bound_until_an_old_collection_ran() {
    let [live, garbage] = ["live_bytes", "garbage_bytes"].map(|name| truth("LiveAndGarbage", name));
    for release in newest() {
        let options = "-Xms320m -Xmx320m -Xmn240m -XX:+UseSerialGC -XX:TLABSize=64k -XX:-ResizeTLAB";
        let mut subject = LaunchPlan::on(release, options).start("LiveAndGarbage", "");
        let _ = subject.says("READY");
        let before = advice(&subject);
        assert_eq!((before.confidence, before.rows[0].kind), (AdviceConfidence::Low, AdvicePart::LiveSetAtMost));
        assert!(before.rows[0].bytes >= live + garbage, "{before:#?}");
        assert!(before.why[0].contains("the live set is unknown"), "{before:#?}");
        let _ = subject.document("--classes");
        let after = advice(&subject);
        let (heap, limit) = (after.heap_bytes.unwrap(), after.limit_bytes.unwrap());
        assert_eq!((after.rows[0].kind, after.proved), (AdvicePart::LiveSet, false));
        let left = after.rows[0].bytes;
        assert!((live..live + 8 * MIB).contains(&left), "{after:#?}");
        assert!(heap >= 2 * left && heap <= before.heap_bytes.unwrap(), "{after:#?}");
        assert_eq!(after.rows.iter().map(|row| row.bytes).sum::<u64>(), limit);
        let rss = subject.rss_bytes();
        assert!(limit + 320 * MIB - heap >= rss && after.limit_as_is_bytes.unwrap() >= rss, "{rss} {after:#?}");
        assert!(after.without.iter().any(|word| word == "-Xmx320m"), "{after:#?}");
    }
}
