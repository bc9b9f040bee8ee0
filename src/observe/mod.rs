//! One file per source of truth: text → values; never adds two sources.
