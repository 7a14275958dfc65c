#[test]
fn show_iperf2() {
    for folder in ["iperf2", "qperf", "nuttcp", "netperf"] {
        let mut paths: Vec<_> = std::fs::read_dir(format!("tests/samples/{folder}"))
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        paths.sort();
        for path in paths {
            println!("== {}", path.display());
            print!(
                "{}",
                crate::summary::of(&std::fs::read_to_string(&path).unwrap())
            );
        }
    }
}
