//! Requests with a body, answers in chunks, connections kept or not: seen in the bytes that came back.

use crate::invocation::{Call, newest, phase};
use loadline::record::{Generator, PhaseRecord};

const REQUESTS: u64 = 100;

fn steady(call: Call) -> PhaseRecord {
    let trial = call.with("-n 100").with("--connections 4").subject("Echo", "{port}").run().expect(0).trial();
    let steady = phase(&trial, "steady").clone();
    assert_eq!((steady.ok, steady.requests), (REQUESTS, REQUESTS), "{steady:?}");
    steady
}

fn generator(call: Call) -> Generator {
    steady(call).generator.unwrap()
}

/// Returns by how much each answer, which tells the length of the body, is longer than `0\n`.
fn longer(call: Call, without: &Generator) -> u64 {
    let received = generator(call).received_bytes - without.received_bytes;
    assert_eq!(received % REQUESTS, 0, "{received}");
    received / REQUESTS
}

#[test]
fn bodies_arrive_whole() {
    for release in newest() {
        let without = generator(Call::on(release).with("--method PUT"));
        for (size, digits) in [("9", 1), ("999", 3), ("100k", 6)] {
            let call = Call::on(release).with("--method PUT").with(&format!("--body-size {size}"));
            assert_eq!(longer(call, &without), digits - 1, "{size}");
        }
        let call = Call::on(release).with("--method POST");
        let file = call.folder().join("body");
        std::fs::write(&file, vec![b'x'; 12_345]).unwrap();
        let body = format!("--body {}", file.display());
        assert_eq!(longer(call.with(&body), &without), 4);
    }
}

#[test]
fn chunks_are_put_together() {
    for release in newest() {
        let url = "--url http://127.0.0.1:{port}/chunked";
        steady(Call::on(release).with(url));
        steady(Call::on(release).with(url).with("--method PUT").with("--body-size 9999"));
    }
}

#[test]
fn connections_are_kept_unless_told_otherwise() {
    for release in newest() {
        assert_eq!(generator(Call::on(release)).connections_opened, 4);
        assert_eq!(generator(Call::on(release).with("--close")).connections_opened, REQUESTS);
    }
}

#[test]
fn a_missing_body_is_told_before_anything_is_started() {
    let call = Call::weigh().with("--method PUT").with("--body nothing-here").subject("Echo", "{port}");
    call.run().expect(2).says(&["error: ", "nothing-here"]);
}
