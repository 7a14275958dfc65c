//! Parses `modules.alias`, which depmod writes: the modules of a kernel that have a driver for a device.

/// Most modules that are returned for one device.
const MOST: usize = 8;

/// Returns the modules that have a driver for the device with this `modalias`, in the order of the file and each once.
//= https://man7.org/linux/man-pages/man5/modules.alias.5.html: `alias PATTERN MODULE`; patterns are those of fnmatch
pub fn claiming(text: &[u8], device: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in text.split(|&b| b == b'\n') {
        let Some((pattern, module)) = alias(line) else {
            continue;
        };
        if found.len() < MOST && matches(pattern, device.as_bytes()) {
            let name = String::from_utf8_lossy(module).into_owned();
            if !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}

fn alias(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let (word, pattern, module) = (fields.next()?, fields.next()?, fields.next()?);
    (word == b"alias").then_some((pattern, module))
}

/// Whether a text matches a pattern in which `*` matches any text and `?` any character. The time is at most the
/// product of both lengths. Sets (`[a-f]`) do not occur in aliases of PCI devices and match nothing.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[from] => {
                at += 1;
                from += 1;
            }
            _ => match star {
                Some((place, begin)) => {
                    (at, from) = (place + 1, begin + 1);
                    star = Some((place, begin + 1));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&b| b == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{claiming, matches};

    const CARD: &str = "pci:v000015B3d00001003sv000015B3sd00000055bc02sc07i00";

    #[test]
    fn modules_that_claim_a_device_are_listed_once() {
        let text = b"# Aliases extracted from modules themselves.\n\
            alias pci:v000015B3d00001013sv*sd*bc*sc*i* mlx5_core\n\
            alias pci:v000015B3d00001003sv*sd*bc*sc*i* mlx4_core\n\
            alias pci:v000015B3d00001003sv*sd*bc02sc*i* mlx4_core\n\
            alias pci:v000015B3d*sv*sd*bc02sc07i* other\n\
            alias broken\nsoftdep mlx4_core post: mlx4_ib\n";
        assert_eq!(claiming(text, CARD), ["mlx4_core", "other"]);
        assert_eq!(claiming(text, &CARD.replace("1003", "1001")), ["other".to_owned()]);
        assert_eq!(claiming(b"", CARD), [""; 0]);
    }

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, text, fits) in [
            ("", "", true),
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "acb", false),
            ("a*b*c", "aXbXbXc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a", "ab", false),
            ("[a]", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes: Vec<u8>, device in "[a-z*?]{0,40}") {
            prop_assert!(claiming(&bytes, &device).len() <= super::MOST);
        }

        #[test]
        fn a_text_fits_itself_with_any_part_replaced_by_a_star(text in "[a-c]{1,20}", cut in 0_usize..20) {
            let cut = cut.min(text.len());
            let pattern = format!("{}*", &text[..cut]);
            prop_assert!(matches(pattern.as_bytes(), text.as_bytes()));
            prop_assert!(matches(text.as_bytes(), text.as_bytes()));
        }
    }
}
