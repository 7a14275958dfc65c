//! The example cases that are built into the program: real systems with published measurements.

/// Name and text of each example case.
pub(crate) const CASES: [(&str, &str); 5] = [
    ("case1", include_str!("../cases/case1.toml")),
    ("case2", include_str!("../cases/case2.toml")),
    ("case3", include_str!("../cases/case3.toml")),
    ("case4", include_str!("../cases/case4.toml")),
    ("case5", include_str!("../cases/case5.toml")),
];
