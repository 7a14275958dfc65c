//! `/proc/cpuinfo`: the CPU's model, under whatever key the architecture puts it.

use super::sysctl;

/// The model of the first CPU; `None` where the file does not name one (most of Arm).
pub fn model(text: &[u8]) -> Option<String> {
    ["model name", "Model Name", "cpu model", "cpu", "uarch"]
        .iter()
        .find_map(|key| sysctl::value_text(text, key))
        .filter(|model| !model.is_empty())
}

#[cfg(test)]
mod tests {
    use super::model;

    #[test]
    fn the_key_depends_on_the_architecture() {
        let x86 = b"processor\t: 0\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) CPU\n";
        assert_eq!(model(x86).unwrap(), "Intel(R) Xeon(R) CPU");
        let power = b"processor\t: 0\ncpu\t\t: POWER9, altivec supported\n";
        assert_eq!(model(power).unwrap(), "POWER9, altivec supported");
        assert_eq!(
            model(b"processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
            None
        );
        assert_eq!(model(b""), None);
    }
}
