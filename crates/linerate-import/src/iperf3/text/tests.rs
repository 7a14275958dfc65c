#[test]
fn show_text() {
    let mut paths: Vec<_> = std::fs::read_dir("tests/samples/iperf3-text")
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
