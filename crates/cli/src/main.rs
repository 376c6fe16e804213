//! The `pilaster` program.

fn main() {}
