//! Attributes a stack to a line of the application.
//!
//! From the allocation upward, this is the first frame that belongs neither to the JDK nor to a framework and is not
//! generated. If no frame qualifies, it is the innermost frame of a framework, or else of the JDK, or else a name for
//! the JVM's own activity.

use crate::owner::{Owner, owner_of, passes_on};
use crate::stack::Frame;
use loadline_base::java_names::is_of_jdk;
use std::fmt;

/// Packages of frameworks and libraries that call an application or work on its behalf, and that never contain
/// application code. An unlisted library counts as application code and is reported as the site.
const FRAMEWORKS: &[&str] = &[
    // Servers and clients.
    "io.netty.",
    "io.grpc.",
    "io.vertx.",
    "io.undertow.",
    "org.xnio.",
    "org.apache.tomcat.",
    "org.apache.catalina.",
    "org.apache.coyote.",
    "org.apache.http.",
    "org.apache.hc.",
    "org.eclipse.jetty.",
    "org.glassfish.",
    "okhttp3.",
    "okio.",
    "org.asynchttpclient.",
    "org.jboss.",
    "org.wildfly.",
    // Frameworks.
    "org.springframework.",
    "io.micronaut.",
    "io.quarkus.",
    "io.helidon.",
    "io.smallrye.",
    "jakarta.",
    "play.",
    "akka.",
    "org.apache.pekko.",
    "ratpack.",
    "io.dropwizard.",
    "io.javalin.",
    "ring.",
    "com.google.inject.",
    "org.aspectj.",
    "net.bytebuddy.",
    "net.sf.cglib.",
    "org.hibernate.",
    "org.apache.ibatis.",
    "com.zaxxer.hikari.",
    "org.eclipse.microprofile.",
    // Reactive libraries and languages.
    "reactor.",
    "io.reactivex.",
    "org.reactivestreams.",
    "kotlin.",
    "kotlinx.",
    "scala.",
    "cats.effect.",
    "zio.",
    "groovy.",
    "org.codehaus.groovy.",
    "org.apache.groovy.",
    "clojure.",
    "org.jruby.",
    "org.graalvm.",
    // General-purpose libraries.
    "com.fasterxml.",
    "com.google.gson.",
    "com.google.common.",
    "com.google.protobuf.",
    "org.apache.commons.",
    "org.apache.logging.",
    "org.slf4j.",
    "ch.qos.logback.",
    "io.micrometer.",
    "io.opentelemetry.",
    "org.xerial.",
    "org.apache.kafka.",
    "com.github.benmanes.caffeine.",
    // Engines that run the application's scripts, rules, and templates.
    "org.mozilla.javascript.",
    "org.openjdk.nashorn.",
    "org.python.",
    "org.luaj.",
    "bsh.",
    "org.mvel2.",
    "ognl.",
    "org.drools.",
    "org.kie.",
    "org.codehaus.janino.",
    "freemarker.",
    "org.thymeleaf.",
    "org.apache.velocity.",
    "com.github.mustachejava.",
    "com.hubspot.jinjava.",
    "net.sf.jasperreports.",
    // Libraries that generate classes, or keep data in native memory.
    "javassist.",
    "org.objectweb.asm.",
    "com.esotericsoftware.",
    "org.rocksdb.",
    "org.duckdb.",
    "org.lwjgl.",
    "org.fusesource.",
    "net.openhft.",
    "com.sun.jna.",
    "org.bytedeco.",
    "org.lmdbjava.",
    // Drivers.
    "org.postgresql.",
    "com.mysql.",
    "org.mariadb.",
    "oracle.jdbc.",
    "com.microsoft.sqlserver.",
    "com.mongodb.",
    "redis.clients.",
    "io.lettuce.",
    "com.datastax.",
    "org.elasticsearch.client.",
    "software.amazon.awssdk.",
];

/// Parts of the names of classes that are generated at run time or build time, in the application's own packages.
const GENERATED: &[&str] = &[
    "$$Lambda",
    "$$EnhancerBy",
    "$$FastClassBy",
    "$$SpringCGLIB$$",
    "$$_Weld",
    "$HibernateProxy$",
    "$ByteBuddy$",
    "_ClientProxy",
    "_Subclass",
    "$Intercepted",
    "GeneratedMethodAccessor",
    "GeneratedConstructorAccessor",
    "$Proxy",
];

/// The kind of code that a site is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PlaceKind {
    /// The application's code.
    Application,
    /// A framework's: the stack has no application frame.
    Framework,
    /// The JDK's: the stack has no application or framework frame.
    Jdk,
    /// The JVM's own, or a native library's on a thread without Java code.
    Native,
}

/// The code that requested memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The kind of code.
    pub kind: PlaceKind,
    /// The frame; `None` if the JVM acted on its own and a name says more.
    pub frame: Option<Frame>,
    /// The name of a place without a frame: `C2 compiler, compiling Scores.of`, ``symbol `X` of libfoo.so``.
    pub name: String,
}

/// `com.shop.Orders.export(Orders.java:88)`, or the name.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.frame {
            Some(frame) => frame.fmt(f),
            None => f.write_str(&self.name),
        }
    }
}

fn is_generated(class: &str) -> bool {
    GENERATED.iter().any(|mark| class.contains(mark))
}

/// The kind of code of a Java frame; `None` for a generated one.
fn kind_of(frame: &Frame) -> Option<PlaceKind> {
    match &*frame.class {
        "" => None,
        class if is_of_jdk(class) => Some(PlaceKind::Jdk),
        class if FRAMEWORKS.iter().any(|package| class.starts_with(package)) => Some(PlaceKind::Framework),
        class if is_generated(class) => None,
        _ => Some(PlaceKind::Application),
    }
}

/// The kind of code of any frame; generated code counts as a framework's.
pub fn code_of(frame: &Frame) -> PlaceKind {
    if frame.is_java() { kind_of(frame).unwrap_or(PlaceKind::Framework) } else { PlaceKind::Native }
}

/// The owner and the place of a stack (innermost frame first) on this thread.
pub(crate) fn locate<'f>(frames: impl DoubleEndedIterator<Item = &'f Frame> + Clone, thread: &str) -> (Owner, Place) {
    let owner = owner_of(frames.clone(), thread);
    // The Java frame on a compiler's stack is being compiled, not executed.
    if let Owner::Compiler { .. } = owner {
        let place = Place { kind: PlaceKind::Native, frame: None, name: owner.to_string() };
        return (owner, place);
    }
    let java = frames.clone().filter(|frame| frame.is_java());
    for wanted in [PlaceKind::Application, PlaceKind::Framework, PlaceKind::Jdk] {
        if let Some(frame) = java.clone().find(|frame| kind_of(frame) == Some(wanted)) {
            return (owner, Place { kind: wanted, frame: Some(frame.clone()), name: String::new() });
        }
    }
    let name = native_name(frames, &owner);
    (owner, Place { kind: PlaceKind::Native, frame: None, name })
}

/// The name of a stack without Java code.
fn native_name<'f>(mut frames: impl Iterator<Item = &'f Frame> + Clone, owner: &Owner) -> String {
    if let Owner::Gc | Owner::ClassLoading | Owner::Threads = owner {
        return owner.to_string();
    }
    let first = frames.clone().next();
    match frames.find(|frame| !passes_on(frame)).or(first) {
        Some(frame) if frame.class.is_empty() => format!("symbol `{}`", frame.method),
        Some(frame) => format!("symbol `{}` of {}", frame.method, frame.class),
        None => "no stack".to_owned(),
    }
}

/// The frames of a stack from its place down to the allocation; all of them if the place is not one of its frames.
pub(crate) fn below<'f>(frames: impl DoubleEndedIterator<Item = &'f Frame> + Clone, place: &Place) -> Vec<&'f Frame> {
    let inner = match &place.frame {
        Some(frame) => frames.clone().position(|own| own == frame).map_or(usize::MAX, |at| at + 1),
        None => usize::MAX,
    };
    let mut taken: Vec<&Frame> = frames.take(inner).collect();
    taken.reverse();
    taken
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::stack::FrameKind;

    /// Parses `lib.so`symbol` for native frames and `a.B.method:12` for Java frames, innermost first.
    pub(crate) fn frames(text: &str) -> Vec<Frame> {
        let frame = |word: &str| match word.split_once('`') {
            Some((class, method)) => {
                Frame { class: class.into(), method: method.into(), line: None, kind: FrameKind::Cpp }
            }
            None => {
                let (name, line) = word.split_once(':').unwrap_or((word, ""));
                let (class, method) = name.rsplit_once('.').unwrap_or(("", name));
                Frame { class: class.into(), method: method.into(), line: line.parse().ok(), kind: FrameKind::Java }
            }
        };
        text.split_whitespace().map(frame).collect()
    }

    #[track_caller]
    fn check(stack: &str, kind: PlaceKind, expect: &str) {
        let frames = frames(stack);
        let (_, place) = locate(frames.iter(), "main");
        assert_eq!((place.kind, place.to_string().as_str()), (kind, expect), "{stack}");
    }

    #[test]
    fn the_first_frame_of_the_application_is_the_site() {
        check(
            "libjvm.so`os::malloc java.nio.ByteBuffer.allocateDirect:33 com.shop.Orders.export:88 com.shop.Main.main:3",
            PlaceKind::Application,
            "com.shop.Orders.export(Orders.java:88)",
        );
        check(
            "io.netty.buffer.Pool.x:1 com.shop.H.read:5 io.netty.channel.C.fire:9",
            PlaceKind::Application,
            "com.shop.H.read(H.java:5)",
        );
        check(
            "java.lang.A.x:1 io.netty.buffer.Pool.x:1 io.netty.channel.C.fire:9",
            PlaceKind::Framework,
            "io.netty.buffer.Pool.x(Pool.java:1)",
        );
        check("libjvm.so`os::malloc java.lang.A.x:1 java.lang.Thread.run:9", PlaceKind::Jdk, "java.lang.A.x(A.java:1)");
    }

    #[test]
    fn generated_frames_are_not_a_site() {
        let under = |generated: &str| {
            let stack = format!("java.util.zip.Deflater.init:1 {generated} com.shop.Orders$Row.x:7");
            check(&stack, PlaceKind::Application, "com.shop.Orders$Row.x(Orders.java:7)");
        };
        under("com.shop.Orders$$Lambda.run");
        under("com.shop.Orders$$SpringCGLIB$$0.export");
        under("jdk.internal.reflect.GeneratedMethodAccessor12.invoke");
        under("jdk.proxy2.$Proxy14.call");
        let codes: Vec<PlaceKind> =
            frames("com.shop.Orders$$Lambda.run A.a libc.so.6`malloc").iter().map(code_of).collect();
        assert_eq!(codes, [PlaceKind::Framework, PlaceKind::Application, PlaceKind::Native]);
        check(
            "com.shop.Orders.lambda$main$0:9",
            PlaceKind::Application,
            "com.shop.Orders.lambda$main$0(Orders.java:9)",
        );
    }

    #[test]
    fn stacks_without_java_get_a_name() {
        check("libjvm.so`os::malloc libjvm.so`G1X::x libc.so.6`clone3", PlaceKind::Native, "GC");
        check("libc.so.6`strdup libfoo.so`grow libc.so.6`clone3", PlaceKind::Native, "symbol `grow` of libfoo.so");
        check("libc.so.6`strdup libc.so.6`clone3", PlaceKind::Native, "symbol `strdup` of libc.so.6");
        check("", PlaceKind::Native, "no stack");
        let compiling =
            "libjvm.so`Arena::grow Scores.of:1 libjvm.so`C2Compiler::x libjvm.so`CompileBroker::invoke_compiler";
        check(compiling, PlaceKind::Native, "C2 compiler, compiling Scores.of");
    }

    #[test]
    fn frames_below_a_site_lead_to_the_allocation() {
        let frames = frames("libc.so.6`malloc java.nio.B.x:1 com.shop.Orders.export:88 com.shop.Main.main:3");
        let (_, place) = locate(frames.iter(), "main");
        let below: Vec<String> = below(frames.iter(), &place).into_iter().map(Frame::brief).collect();
        assert_eq!(below, ["Orders.export(Orders.java:88)", "B.x(B.java:1)", "libc.so.6`malloc"]);
    }
}
