//! Frames and stacks, each stored once.

use loadline_base::java_names::{java_name, plain_class};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The kind of code of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameKind {
    /// A Java method: interpreted, compiled, or inlined.
    Java,
    /// A C function or a stub.
    Native,
    /// A C++ function.
    Cpp,
    /// The kernel.
    Kernel,
}

impl FrameKind {
    /// From the description in a recording: `Interpreted`, `JIT compiled`, `C1 compiled`, `Inlined`, `Native`, `C++`,
    /// `Kernel`.
    pub(crate) fn described(text: &str) -> Self {
        match text {
            "Native" => Self::Native,
            "C++" => Self::Cpp,
            "Kernel" => Self::Kernel,
            _ => Self::Java,
        }
    }
}

/// One call on a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The fully qualified class, `com.shop.Orders$Row`; for native frames, the library's file name, if known.
    pub class: Arc<str>,
    /// The method, or the native symbol without its arguments.
    pub method: Arc<str>,
    /// The source line, from 1, if the class has line numbers.
    pub line: Option<u32>,
    /// The kind of code.
    pub kind: FrameKind,
}

impl Frame {
    /// Whether this is a Java method.
    pub fn is_java(&self) -> bool {
        self.kind == FrameKind::Java
    }

    /// The class without its package.
    pub fn class_brief(&self) -> &str {
        self.class.rsplit('.').next().unwrap_or(&self.class)
    }

    /// The source file's name, derived from the outermost class, because recordings lack file names. Kotlin and Scala
    /// classes are shown with `.java` too.
    pub fn source_file(&self) -> Option<String> {
        let outer = self.class_brief().split('$').next().filter(|outer| !outer.is_empty())?;
        self.is_java().then(|| format!("{outer}.java"))
    }

    /// `Orders.export(Orders.java:88)`: like [`fmt::Display`], without the package.
    pub fn brief(&self) -> String {
        self.shown(self.class_brief())
    }

    fn shown(&self, class: &str) -> String {
        if !self.is_java() {
            return match class.is_empty() {
                true => self.method.to_string(),
                false => format!("{}`{}", self.class, self.method),
            };
        }
        match (self.line, self.source_file()) {
            (Some(line), Some(file)) => format!("{class}.{}({file}:{line})", self.method),
            _ => format!("{class}.{}", self.method),
        }
    }
}

/// `com.shop.Orders.export(Orders.java:88)` as Java prints it, or ``libz.so.1`deflateInit2_`` for a native frame.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown(&self.class))
    }
}

/// Converts the JVM's class name to that of Java source; a hidden class loses its number and address.
pub(crate) fn class_name(internal: &str) -> String {
    let name = java_name(internal);
    // The array dimensions follow the dropped part.
    let (element, dimensions) = name.split_at(name.find("[]").unwrap_or(name.len()));
    plain_class(element).to_owned() + dimensions
}

/// Frames and stacks, each stored once. A stack is a list of frame indices, innermost first.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    frames: Vec<Frame>,
    frame_places: HashMap<Frame, u32>,
    stacks: Vec<Arc<[u32]>>,
    stack_places: HashMap<Arc<[u32]>, u32>,
    bytes: usize,
}

impl Stacks {
    pub(crate) fn keep_frame(&mut self, frame: Frame) -> u32 {
        if let Some(place) = self.frame_places.get(&frame) {
            return *place;
        }
        let place = self.frames.len() as u32;
        self.bytes += 2 * size_of::<Frame>() + frame.class.len() + frame.method.len();
        self.frames.push(frame.clone());
        self.frame_places.insert(frame, place);
        place
    }

    pub(crate) fn keep(&mut self, stack: &[u32]) -> u32 {
        if let Some(place) = self.stack_places.get(stack) {
            return *place;
        }
        let place = self.stacks.len() as u32;
        let stack: Arc<[u32]> = Arc::from(stack);
        self.bytes += 4 * stack.len() + 64;
        self.stacks.push(Arc::clone(&stack));
        self.stack_places.insert(stack, place);
        place
    }

    /// Approximate bytes of frames and stacks.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The frames of a stack, innermost first.
    pub(crate) fn frames(&self, stack: u32) -> impl DoubleEndedIterator<Item = &Frame> + Clone {
        let places = self.stacks.get(stack as usize).map_or(&[][..], |stack| stack);
        places.iter().filter_map(|place| self.frames.get(*place as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(class: &str, method: &str, line: u32, kind: FrameKind) -> Frame {
        Frame { class: class.into(), method: method.into(), line: (line > 0).then_some(line), kind }
    }

    #[test]
    fn frames_are_formatted_like_javas() {
        let java = |class: &str, line| frame(class, "export", line, FrameKind::Java);
        assert_eq!(java("com.shop.Orders", 88).to_string(), "com.shop.Orders.export(Orders.java:88)");
        assert_eq!(java("com.shop.Orders", 88).brief(), "Orders.export(Orders.java:88)");
        assert_eq!(java("Orders$Row$1", 7).to_string(), "Orders$Row$1.export(Orders.java:7)");
        assert_eq!(java("Orders", 0).to_string(), "Orders.export");
        let native = frame("libz.so.1", "deflateInit2_", 0, FrameKind::Native);
        assert_eq!(native.to_string(), "libz.so.1`deflateInit2_");
        assert_eq!(frame("", "malloc", 0, FrameKind::Native).to_string(), "malloc");
    }

    #[test]
    fn class_names_are_shown_as_in_source_code() {
        let cases = [
            ("[[Ljava/lang/String;", "java.lang.String[][]"),
            ("[Lcom/shop/Orders$$Lambda$14/0x00007f31a8;", "com.shop.Orders$$Lambda[]"),
            ("com/shop/Orders$$Lambda$14/0x00007f31a8", "com.shop.Orders$$Lambda"),
            ("com/shop/Orders$$Lambda.0x00007f31a8", "com.shop.Orders$$Lambda"),
            ("java/lang/invoke/LambdaForm$MH+0x00007f31a8", "java.lang.invoke.LambdaForm$MH"),
        ];
        for (internal, expect) in cases {
            assert_eq!(class_name(internal), expect);
        }
    }

    #[test]
    fn equal_stacks_are_stored_once() {
        let mut stacks = Stacks::default();
        let a = stacks.keep_frame(frame("A", "a", 1, FrameKind::Java));
        assert_eq!(stacks.keep_frame(frame("A", "a", 1, FrameKind::Java)), a);
        let b = stacks.keep_frame(frame("A", "a", 2, FrameKind::Java));
        let one = stacks.keep(&[a, b]);
        assert_eq!(stacks.keep(&[a, b]), one);
        assert_ne!(stacks.keep(&[b, a]), one);
        assert_eq!(stacks.frames(one).map(|frame| frame.line).collect::<Vec<_>>(), [Some(1), Some(2)]);
        assert_eq!(stacks.frames(99).count(), 0);
    }
}
