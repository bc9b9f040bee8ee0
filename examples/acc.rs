//! Debug.
fn main() { let a: Vec<String> = std::env::args().collect(); loadline::trial::accounting::dump(a[1].parse().unwrap(), !a.iter().any(|x| x=="--no-stop")); }
