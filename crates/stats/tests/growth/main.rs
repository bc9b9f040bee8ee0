//! The verdict on growth, on lives that are made up: its laws, and a small run of its calibration.

mod calibration;
mod laws;
#[expect(dead_code, reason = "the whole calibration has more of them")]
mod lives;
