//! A program that runs in a guest: the script that starts it, and its output.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::error::VmError;
use crate::program::{Output, Program};

/// Returns the shell script that executes the program.
pub(super) fn script(program: &Program) -> Result<Vec<u8>, VmError> {
    let folder = program.directory().map_err(|e| VmError::impossible(e.to_string()))?;
    let folder = quoted(folder.as_os_str())?;
    let refusal =
        b" 2>/dev/null || {\n  echo \"linerate: the virtual machine has no folder $folder: \
        its /tmp and /run are its own\" >&2\n  exit 126\n}\n";
    let mut text = [b"folder=", &folder[..], b"\ncd \"$folder\"", refusal].concat();
    for (name, value) in &program.env {
        text.extend([b"export ", name.as_bytes(), b"="].concat());
        text.extend(quoted(value)?);
        text.push(b'\n');
    }
    text.extend(b"exec");
    if !program.cpus.is_empty() {
        let cpus: Vec<String> = program.cpus.iter().map(usize::to_string).collect();
        text.extend(format!(" taskset -c {}", cpus.join(",")).bytes());
    }
    for word in &program.argv {
        text.push(b' ');
        text.extend(quoted(word)?);
    }
    text.push(b'\n');
    Ok(text)
}

/// Quotes a word so that a shell does not interpret it.
fn quoted(word: &OsStr) -> Result<Vec<u8>, VmError> {
    let bytes = word.as_bytes();
    if bytes.contains(&0) {
        return Err(VmError::impossible("a word of a command holds a zero byte"));
    }
    let mut text = vec![b'\''];
    for &byte in bytes {
        match byte {
            b'\'' => text.extend(b"'\\''"),
            _ => text.push(byte),
        }
    }
    text.push(b'\'');
    Ok(text)
}

/// A file that a program in the guest writes, and that is read while it grows.
pub(super) struct Stream {
    file: File,
    output: Output,
    taken: Vec<u8>,
}

impl Stream {
    /// Creates the file.
    pub(super) fn create(path: &Path, output: Output) -> io::Result<Self> {
        File::create(path)?;
        Ok(Self { file: File::open(path)?, output, taken: Vec::new() })
    }

    /// Reads the output that was written since the last call. Copies it to `own`, the caller's stream of the same kind,
    /// if the program's output is [`Output::Inherit`].
    pub(super) fn pump(&mut self, own: &mut dyn Write) -> io::Result<()> {
        let mut new = Vec::new();
        self.file.read_to_end(&mut new)?;
        match self.output {
            Output::Pipe => self.taken.append(&mut new),
            Output::Inherit if !new.is_empty() => {
                own.write_all(&new)?;
                own.flush()?;
            }
            Output::Inherit | Output::Null => {}
        }
        Ok(())
    }

    pub(super) fn taken(self) -> Vec<u8> {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// Runs the script of a program on this machine; returns its exit code and its output.
    fn run(program: &Program) -> (Option<i32>, String, String) {
        let output = Command::new("sh")
            .arg("-c")
            .arg(OsStr::from_bytes(&script(program).unwrap()))
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    #[test]
    fn words_arrive_as_they_are() {
        let words = ["a b", "it's", "$HOME", "\"\n*", ""];
        let program = Program::new("printf").arg("<%s>").args(words);
        let want = words.map(|w| format!("<{w}>")).concat();
        assert_eq!(run(&program), (Some(0), want, String::new()));
    }

    #[test]
    fn environment_folder_and_cpus_are_the_programs() {
        let program = Program::new("sh")
            .args(["-c", "echo $A; pwd; taskset -cp $$"])
            .env("A", "it's")
            .current_dir("/usr")
            .cpus([0]);
        let (code, out, _) = run(&program);
        assert_eq!(code, Some(0));
        assert!(out.starts_with("it's\n/usr\n"), "{out}");
        assert!(out.ends_with(": 0\n"), "{out}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_told() {
        let (code, out, reported) = run(&Program::new("pwd").current_dir("/no/where"));
        assert_eq!((code, &*out), (Some(126), ""));
        assert!(reported.contains("/no/where"), "{reported}");
        assert!(script(&Program::new("a\0b")).is_err());
    }

    #[test]
    fn a_stream_is_kept_or_passed_on_or_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for (output, kept, passed) in
            [(Output::Pipe, "ab", ""), (Output::Inherit, "", "ab"), (Output::Null, "", "")]
        {
            let mut stream = Stream::create(&path, output).unwrap();
            let mut own = Vec::new();
            for text in ["a", "ab"] {
                fs::write(&path, text).unwrap();
                stream.pump(&mut own).unwrap();
            }
            assert_eq!(stream.taken(), kept.as_bytes());
            assert_eq!(own, passed.as_bytes());
        }
    }
}
