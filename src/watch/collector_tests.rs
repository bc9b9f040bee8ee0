//! Collectors from variables, and the handling of each response.

use super::*;

fn of(set: &[(&str, &str)], typed: &str) -> Result<Collector> {
    Collector::of(typed, |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
}

#[test]
fn opentelemetry_variables_are_respected() {
    let url = |set: &[(&str, &str)], typed: &str| {
        let collector = of(set, typed).unwrap();
        format!("{}{}", collector.authority(), collector.url.path)
    };
    assert_eq!(url(&[], ""), "localhost:4318/v1/metrics");
    assert_eq!(url(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1/x/")], ""), "a:1/x/v1/metrics");
    assert_eq!(url(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://a:1/as-it-is")], ""), "a:1/as-it-is");
    assert_eq!(url(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://a:1")], ""), "a:1/");
    assert_eq!(url(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1")], "http://b:2/y"), "b:2/y");
    assert_eq!(url(&[], "http://[::1]:4318"), "[::1]:4318/v1/metrics", "a URL in an option gets the default path");
    let set = [
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=shop, zone=a%2Cb"),
        ("OTEL_SERVICE_NAME", "till"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "5000"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2000"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "Authorization=Basic%20bWU6eA%3D%3D"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "other=1"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    ];
    let Collector { resource, every, within, headers, .. } = of(&set, "").unwrap();
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(resource, [pair("zone", "a,b"), pair("service.name", "till")]);
    assert_eq!((every, within), (Duration::from_secs(5), Duration::from_secs(2)));
    assert_eq!(headers, [pair("Authorization", "Basic bWU6eA==")]);
}

#[test]
fn invalid_opentelemetry_variables_are_rejected_by_name() {
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b\r\nc: d"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b%0d%0ac: d"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=%zz"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=%e4%"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=%ff"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a b=c"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "nothing"),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "often"),
    ] {
        let error = of(&[(name, value)], "").unwrap_err();
        assert!(error.what.contains(name), "{name}={value}: {}", error.what);
    }
    assert!(of(&[], "no url").is_err() && of(&[], "http://a/b c").is_err());
    let collector = of(&[("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file")], "https://a").unwrap();
    assert!(collector.trusted().unwrap_err().what.contains("/no/such/file"));
}

#[test]
fn status_and_body_determine_what_a_collector_accepted() {
    let told = |status: &str, body: &str| judged(format!("HTTP/1.1 {status}\r\n\r\n{body}").as_bytes());
    assert_eq!(told("200 OK", "{\"partialSuccess\":{}}"), Sent::Taken);
    assert_eq!(told("202 Accepted", "\u{0}protobuf"), Sent::Taken);
    let partly =
        "2f\r\n{\"partialSuccess\":{\"rejectedDataPoints\":\"3\",\"errorMessage\":\"too\\u0007old\"}}\r\n0\r\n";
    assert_eq!(told("200 OK", partly), Sent::Partly("3 data points were rejected: too old".to_owned()));
    let hint = "{\"partialSuccess\":{\"rejectedDataPoints\":0,\"errorMessage\":\"use another name\"}}";
    assert_eq!(told("200 OK", hint), Sent::Partly("use another name".to_owned()));
    let refused = told("400 Bad Request", "{\"code\":3,\"message\":\"unknown field\"}");
    assert_eq!(refused, Sent::Refused("it responded with `400 Bad Request`: unknown field".to_owned()));
    assert!(matches!(told("301 Moved", ""), Sent::Refused(_)));
    assert!(matches!(told("500 Oh", ""), Sent::Refused(_)));
    for (after, expected) in
        [("7", Some(Duration::from_secs(7))), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("-1", None)]
    {
        let answer = told(&format!("503 Busy\r\nretry-AFTER: {after}"), "");
        assert_eq!(answer, Sent::Busy { why: "it responded with `503 Busy`".to_owned(), again_after: expected });
    }
    assert!(matches!(judged(b"SSH-2.0-x\r\n\r\n"), Sent::Refused(_)));
}
