//! Writes recordings for tests: async-profiler's types, pools, and events, plus fields of a later version.

/// Bytes of an event, a pool, or a chunk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn integer(mut self, mut value: u64) -> Self {
        for _ in 0..8 {
            if value < 0x80 {
                self.0.push(value as u8);
                return self;
            }
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    pub(crate) fn integers(self, values: &[u64]) -> Self {
        values.iter().fold(self, |bytes, value| bytes.integer(*value))
    }

    pub(crate) fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    pub(crate) fn text(self, text: &str) -> Self {
        let mut bytes = self.byte(3).integer(text.len() as u64);
        bytes.0.extend(text.as_bytes());
        bytes
    }

    pub(crate) fn then(mut self, other: &Self) -> Self {
        self.0.extend(&other.0);
        self
    }
}

/// An event with its size, which includes itself.
pub(crate) fn event(of: u64, content: &Bytes) -> Bytes {
    let body = Bytes::default().integer(of).then(content);
    let mut size = body.0.len() as u64 + 1;
    while Bytes::default().integer(size).0.len() as u64 + (body.0.len() as u64) != size {
        size += 1;
    }
    Bytes::default().integer(size).then(&body)
}

/// A field: name, type id, whether it is a pool key, whether it is an array.
pub(crate) type FieldSpec = (&'static str, u64, bool, bool);
/// A type: id, name, fields.
pub(crate) type TypeSpec = (u64, &'static str, Vec<FieldSpec>);

pub(crate) const INT: u64 = 7;
pub(crate) const LONG: u64 = 8;
pub(crate) const BOOLEAN: u64 = 4;
pub(crate) const DOUBLE: u64 = 6;
pub(crate) const STRING: u64 = 20;
pub(crate) const CLASS: u64 = 21;
pub(crate) const THREAD: u64 = 22;
pub(crate) const STACK: u64 = 26;
pub(crate) const FRAME: u64 = 27;
pub(crate) const METHOD: u64 = 28;
pub(crate) const KIND: u64 = 24;
pub(crate) const SYMBOL: u64 = 30;
pub(crate) const POINT: u64 = 31;
pub(crate) const MALLOC: u64 = 118;
pub(crate) const FREE: u64 = 119;
pub(crate) const LIVE: u64 = 120;
pub(crate) const SETTING: u64 = 121;
pub(crate) const TRACE: u64 = 122;
pub(crate) const OTHER: u64 = 300;

/// async-profiler's types, with additional fields in each event: a `Point` of two doubles, an array.
pub(crate) fn types() -> Vec<TypeSpec> {
    let key = |name, of| (name, of, true, false);
    let own = |name, of| (name, of, false, false);
    let list = |name, of| (name, of, false, true);
    vec![
        (BOOLEAN, "boolean", vec![]),
        (DOUBLE, "double", vec![]),
        (INT, "int", vec![]),
        (LONG, "long", vec![]),
        (STRING, "java.lang.String", vec![]),
        (CLASS, "java.lang.Class", vec![own("flags", INT), key("name", SYMBOL)]),
        (THREAD, "java.lang.Thread", vec![own("osName", STRING), own("osThreadId", LONG), own("javaName", STRING)]),
        (KIND, "jdk.types.FrameType", vec![own("description", STRING)]),
        (STACK, "jdk.types.StackTrace", vec![own("truncated", BOOLEAN), list("frames", FRAME)]),
        (
            FRAME,
            "jdk.types.StackFrame",
            vec![key("method", METHOD), own("lineNumber", INT), own("bytecodeIndex", INT), key("type", KIND)],
        ),
        (METHOD, "jdk.types.Method", vec![key("type", CLASS), key("name", SYMBOL), own("hidden", BOOLEAN)]),
        (SYMBOL, "jdk.types.Symbol", vec![own("string", STRING)]),
        (POINT, "later.Point", vec![own("x", DOUBLE), own("y", DOUBLE)]),
        (
            MALLOC,
            "profiler.Malloc",
            vec![
                own("startTime", LONG),
                own("later", POINT),
                key("eventThread", THREAD),
                key("stackTrace", STACK),
                list("also", POINT),
                own("address", LONG),
                own("size", LONG),
            ],
        ),
        (FREE, "profiler.Free", vec![own("startTime", LONG), key("eventThread", THREAD), own("address", LONG)]),
        (
            LIVE,
            "profiler.LiveObject",
            vec![
                own("startTime", LONG),
                key("eventThread", THREAD),
                key("stackTrace", STACK),
                key("objectClass", CLASS),
                own("allocationSize", LONG),
            ],
        ),
        (SETTING, "jdk.ActiveSetting", vec![own("startTime", LONG), own("name", STRING), own("value", STRING)]),
        (
            TRACE,
            "jdk.MethodTrace",
            vec![
                own("startTime", LONG),
                own("duration", LONG),
                key("eventThread", THREAD),
                key("stackTrace", STACK),
                key("method", METHOD),
            ],
        ),
        (OTHER, "jdk.Other", vec![own("startTime", LONG)]),
    ]
}

pub(crate) fn metadata(types: &[TypeSpec]) -> Bytes {
    let mut strings: Vec<String> = Vec::new();
    let mut place = |text: &str| match strings.iter().position(|known| known == text) {
        Some(place) => place as u64,
        None => {
            strings.push(text.to_owned());
            strings.len() as u64 - 1
        }
    };
    let mut element = |name: &str, attributes: &[(&str, String)], children: u64| {
        let mut bytes = Bytes::default().integer(place(name)).integer(attributes.len() as u64);
        for (key, value) in attributes {
            bytes = bytes.integer(place(key)).integer(place(value));
        }
        bytes.integer(children)
    };
    let mut tree = element("root", &[], 1).then(&element("metadata", &[], types.len() as u64));
    for (id, name, fields) in types {
        let named = [("id", id.to_string()), ("name", (*name).to_owned())];
        tree = tree.then(&element("class", &named, fields.len() as u64));
        for (name, of, pooled, array) in fields {
            let mut said = vec![("name", (*name).to_owned()), ("class", of.to_string())];
            said.extend(pooled.then(|| ("constantPool", "true".to_owned())));
            said.extend(array.then(|| ("dimension", "1".to_owned())));
            tree = tree.then(&element("field", &said, 1)).then(&element("annotation", &[], 0));
        }
    }
    let head = Bytes::default().integers(&[0, 0, 1, strings.len() as u64]);
    event(0, &strings.iter().fold(head, |bytes, text| bytes.text(text)).then(&tree))
}

/// A checkpoint with pools: the id of each type, and its keys and values.
pub(crate) fn checkpoint(pools: &[(u64, &[(u64, Bytes)])]) -> Bytes {
    let head = Bytes::default().integers(&[0, 0, 0]).byte(1).integer(pools.len() as u64);
    let content = pools.iter().fold(head, |bytes, (of, entries)| {
        let bytes = bytes.integer(*of).integer(entries.len() as u64);
        entries.iter().fold(bytes, |bytes, (key, value)| bytes.integer(*key).then(value))
    });
    event(1, &content)
}

/// Ticks per second in the chunks.
pub(crate) const TICKS: u64 = 1000;
/// Ticks at the start of a chunk.
pub(crate) const START: u64 = 50;

/// A complete chunk with a matching header.
pub(crate) fn chunk(start_ns: u64, metadata: &Bytes, events: &[Bytes], checkpoints: &[Bytes]) -> Vec<u8> {
    let content = [std::slice::from_ref(metadata), events, checkpoints].concat();
    let content: Vec<u8> = content.iter().flat_map(|bytes| bytes.0.clone()).collect();
    let last = checkpoints.last().map_or(0, |last| last.0.len());
    let size = 68 + content.len() as u64;
    let mut bytes = b"FLR\0\x00\x02\x00\x00".to_vec();
    for number in [size, size - last as u64, 68, start_ns, 0, START, TICKS] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(1_u32.to_be_bytes());
    bytes.extend(content);
    bytes
}

/// `profiler.Malloc` at a tick after the start.
pub(crate) fn malloc(tick: u64, thread: u64, stack: u64, address: u64, size: u64) -> Bytes {
    let mut bytes = Bytes::default().integer(START + tick);
    bytes.0.extend([0; 16]);
    let mut bytes = bytes.integers(&[thread, stack, 2]);
    bytes.0.extend([0; 32]);
    event(MALLOC, &bytes.integers(&[address, size]))
}

/// `profiler.Free`.
pub(crate) fn free(tick: u64, thread: u64, address: u64) -> Bytes {
    event(FREE, &Bytes::default().integers(&[START + tick, thread, address]))
}

/// `profiler.LiveObject`.
pub(crate) fn live(thread: u64, stack: u64, class: u64, size: u64) -> Bytes {
    event(LIVE, &Bytes::default().integers(&[START, thread, stack, class, size]))
}

/// `jdk.MethodTrace`.
pub(crate) fn trace(tick: u64, thread: u64, stack: u64) -> Bytes {
    event(TRACE, &Bytes::default().integers(&[START + tick, 3, thread, stack, 0]))
}

/// `jdk.ActiveSetting`.
pub(crate) fn setting(name: &str, value: &str) -> Bytes {
    event(SETTING, &Bytes::default().integer(START).text(name).text(value))
}

/// Two checkpoints with two threads and four stacks: 1 `Orders.export:88 ← Main.main:3` under `ByteBuffer.x`, 2 a
/// compilation of `Scores.of`, 3 `Orders.load:99`, 4 `ProcessBuilder.start ← Orders.load:99`. The second checkpoint has
/// the symbols and the last two stacks.
pub(crate) fn tables() -> Vec<Bytes> {
    let value = Bytes::default;
    let text = |text: &str| value().text(text);
    let frame = |method: u64, line: u64, kind: u64| [method, line, 0, kind];
    let stack = |frames: &[[u64; 4]]| {
        let head = value().byte(0).integer(frames.len() as u64);
        frames.iter().fold(head, |bytes, frame| bytes.integers(frame))
    };
    let first = checkpoint(&[
        (KIND, &[(1, text("Interpreted")), (4, text("C++"))]),
        (
            THREAD,
            &[
                (11, text("web-1").integer(11).text("web-1")),
                (12, value().byte(5).integer(9).then(&Bytes(b"C2 Compil".to_vec())).integer(12).byte(0)),
            ],
        ),
        (
            STACK,
            &[
                (1, stack(&[frame(101, 0, 4), frame(102, 33, 1), frame(103, 88, 1), frame(104, 3, 1)])),
                (2, stack(&[frame(105, 0, 4), frame(106, 9, 1), frame(107, 0, 4)])),
            ],
        ),
        (METHOD, &(101..=110).map(|key| (key, value().integers(&[key, key]).byte(0))).collect::<Vec<_>>()),
        (CLASS, &(101..=110).map(|key| (key, value().integers(&[0, 1000 + key]))).collect::<Vec<_>>()),
        (OTHER, &[(1, value().integer(5))]),
    ]);
    let names = [
        (101, "Unsafe_AllocateMemory0", "libjvm.so"),
        (102, "allocateDirect", "java/nio/ByteBuffer"),
        (103, "export", "com/shop/Orders"),
        (104, "main", "com/shop/Main"),
        (105, "Arena::grow", "libjvm.so"),
        (106, "of", "com/shop/Scores"),
        (107, "CompileBroker::compiler_thread_loop", "libjvm.so"),
        (108, "load", "com/shop/Orders"),
        (109, "none", "[B"),
        (110, "start", "java/lang/ProcessBuilder"),
    ];
    let symbols: Vec<(u64, Bytes)> = names
        .iter()
        .flat_map(|(key, method, class)| [(*key, text(method)), (1000 + *key, text(class))])
        // A string from the pool of strings.
        .map(|(key, text)| if key == 108 { (key, value().byte(2).integer(77)) } else { (key, text) })
        .collect();
    let second = checkpoint(&[
        (SYMBOL, &symbols),
        (STRING, &[(77, text("load"))]),
        (
            STACK,
            &[
                (3, stack(&[frame(101, 0, 4), frame(108, 99, 1)])),
                (4, stack(&[frame(110, 1073, 1), frame(108, 99, 1)])),
            ],
        ),
    ]);
    vec![first, second]
}
