//! The load engine. Knows no JVM.
