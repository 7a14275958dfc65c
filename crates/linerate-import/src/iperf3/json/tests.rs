use super::*;

#[test]
fn show() {
    for entry in std::fs::read_dir("tests/samples/iperf3-json").unwrap() {
        let path = entry.unwrap().path();
        println!("== {}", path.display());
        print!(
            "{}",
            crate::summary::of(&std::fs::read_to_string(&path).unwrap())
        );
    }
}
