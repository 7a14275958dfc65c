//! Quoting of text for a shell.

/// Returns a name as one word for a shell, quoted if necessary: other people choose the names of ports and peers.
pub fn word(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:@%+,/=-".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_otherwise_is_quoted() {
        for name in ["eth0", "enp3s0f1np1.100", "10.0.0.2", "fe80::1%eth0", "/a-b_c", "a,b"] {
            assert_eq!(word(name), name);
        }
        for (name, want) in [
            ("", "''"),
            ("a b", "'a b'"),
            ("x;reboot", "'x;reboot'"),
            ("$(x)", "'$(x)'"),
            ("it's", "'it'\\''s'"),
            ("a\nb", "'a\nb'"),
            ("~", "'~'"),
        ] {
            assert_eq!(word(name), want);
        }
    }
}
