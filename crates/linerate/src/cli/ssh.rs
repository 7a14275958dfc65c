//! A far end that is started over ssh: it gets its key from this program, and ends with the run.

use std::process::{Command, Stdio};
use std::str::FromStr;

use anyhow::anyhow;
use linerate_session::peer::address::Target;

use super::exit::Failure;
use super::far_end::{FarEnd, Unmade};
use super::options::Options;
use super::reach;

/// The prefix of a target that is reached over ssh.
const SCHEME: &str = "ssh://";

/// Option of ssh: if Ctrl-C ends this program while ssh still connects, ssh ends by itself after 15 s.
const CONNECT_TIMEOUT: &str = "ConnectTimeout=15";

/// The exit status of ssh when it could not connect.
const SSH_FAILED: i32 = 255;
/// The exit code of a shell if the program to run does not exist.
const NO_PROGRAM: i32 = 127;

/// A far end as it was typed: `ssh://[user@]host[:port][/path/of/linerate]`.
#[derive(Debug, PartialEq, Eq)]
struct Url {
    /// The destination that ssh connects to: `user@host`.
    destination: String,
    /// TCP port of the ssh server.
    port: Option<u16>,
    /// Path or name of linerate on the far host.
    program: String,
}

/// The error for a target that cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{SCHEME}{0}` is not a far end (expected for example `{SCHEME}brook`, `{SCHEME}ann@brook:22` or \
     `{SCHEME}brook/opt/linerate`)"
)]
struct UrlError(String);

impl FromStr for Url {
    type Err = UrlError;

    /// Parses the text after `ssh://`.
    fn from_str(text: &str) -> Result<Self, UrlError> {
        let wrong = || UrlError(text.to_owned());
        let (authority, path) = match text.find('/') {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        // The target is parsed as for every far end, but without a default port: ssh has its own.
        let target = Target::parse(host, 0).map_err(|_| wrong())?;
        let plain = |text: &str, more: &str| {
            let letter =
                |c: char| c.is_ascii_alphanumeric() || "._-".contains(c) || more.contains(c);
            !text.starts_with('-') && text.chars().all(letter)
        };
        // The far shell parses the path of the program, so it must have no characters that are special to a shell.
        if !user.is_none_or(|user| !user.is_empty() && plain(user, "")) || !plain(path, "/+~") {
            return Err(wrong());
        }
        let user = user.map_or_else(String::new, |user| format!("{user}@"));
        Ok(Self {
            destination: format!("{user}{}", target.host),
            port: Some(target.port).filter(|port| *port > 0),
            program: match path {
                "" | "/" => "linerate",
                // `/~/...` is a path in the home directory, as in URLs of Git.
                path if path.starts_with("/~") => &path[1..],
                path => path,
            }
            .to_owned(),
        })
    }
}

impl Url {
    /// A command that runs ssh with option `mode`, without a terminal, to the destination.
    fn ssh(&self, mode: &str) -> Command {
        // ssh ignores Ctrl-C: this program handles it and ends the run in order over the connection of ssh. The shell
        // ignores the signal, and ssh, which replaces it, inherits that.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' INT; exec ssh \"$@\"", "ssh"]);
        command.args([mode, "-T", "-o", CONNECT_TIMEOUT, "-o", "NumberOfPasswordPrompts=1"]);
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        command.args(["--", &self.destination]);
        command
    }

    /// The host name after ssh's configuration has been applied: the typed name may be an alias.
    fn host(&self) -> Result<String, Failure> {
        let output = self.ssh("-G").stderr(Stdio::inherit()).output();
        let output = reach::system(output, "cannot start a shell")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let name = text.lines().find_map(|line| line.strip_prefix("hostname "));
        name.map(str::to_owned).ok_or_else(|| {
            let error =
                anyhow!("`ssh -G` does not show the address of host `{}`", self.destination);
            Failure::not_measured(error).hint(match output.status.code() {
                Some(NO_PROGRAM) => "sudo apt-get install openssh-client",
                _ => "",
            })
        })
    }

    /// The ssh command that connects to the far host, as users type it.
    fn called(&self) -> String {
        let port = self.port.map(|port| format!("-p {port} "));
        format!("ssh {}{}", port.unwrap_or_default(), self.destination)
    }

    /// The destination for scp, where a colon ends the host: an IPv6 address is put in brackets.
    fn bracketed(&self) -> String {
        let (user, host) = match self.destination.rsplit_once('@') {
            Some((user, host)) => (format!("{user}@"), host),
            None => (String::new(), &*self.destination),
        };
        if host.contains(':') { format!("{user}[{host}]") } else { format!("{user}{host}") }
    }

    /// Words with the command that copies linerate to the far host, and with the target to type afterwards.
    fn brought(&self) -> String {
        let there = self.bracketed();
        let port = self.port.map(|port| (format!("-P {port} "), format!(":{port}")));
        let (option, port) = port.unwrap_or_default();
        format!(
            "scp {option}\"$(command -v linerate)\" {there}:linerate; then name it: \
             {SCHEME}{there}{port}/~/linerate"
        )
    }

    /// The failure if no far end listens on the far host; `code` is the exit status of ssh.
    fn unmade(&self, code: Option<i32>) -> Failure {
        let (program, host, called) = (&self.program, &self.destination, self.called());
        let (error, hint) = match code {
            Some(SSH_FAILED) => (
                anyhow!("ssh cannot connect to `{host}`"),
                format!("{called} true    (must work first)"),
            ),
            Some(NO_PROGRAM) => (anyhow!("there is no `{program}` on `{host}`"), self.brought()),
            _ => (
                anyhow!("`{program} serve` on `{host}` ended before it listened"),
                format!("{called} {program} --version    (an older one may not know --attached)"),
            ),
        };
        Failure::not_measured(error).hint(hint)
    }
}

/// The text after `ssh://`, if the target is reached over ssh.
pub(crate) fn url(target: &str) -> Option<&str> {
    target.strip_prefix(SCHEME)
}

/// Starts the far end that `url`, the text after `ssh://`, names. With `changes`, that far end lets runs change
/// settings of its host.
pub(crate) fn start(url: &str, options: &Options, changes: bool) -> Result<FarEnd, Failure> {
    let url: Url = url.parse().map_err(Failure::usage)?;
    let host = url.host()?;
    let mut command = url.ssh("-x");
    command.args([&url.program, "serve", "--attached"]);
    if let Some(port) = options.peer.port {
        command.args(["--port", &port.0.to_string()]);
    }
    if changes {
        command.arg("--allow-changes");
    }
    FarEnd::start(command, host).map_err(|unmade| match unmade {
        Unmade::Ended(code) => url.unmade(code),
        Unmade::Unstarted(error) => match reach::system::<()>(Err(error), "cannot start a shell") {
            Err(failure) => failure,
            Ok(()) => url.unmade(None),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(destination: &str, port: Option<u16>, program: &str) -> Url {
        Url { destination: destination.to_owned(), port, program: program.to_owned() }
    }

    #[test]
    fn a_far_end_has_a_host_and_may_have_more() {
        for (text, expected) in [
            ("brook", url("brook", None, "linerate")),
            ("brook/", url("brook", None, "linerate")),
            ("ann@brook", url("ann@brook", None, "linerate")),
            ("brook:2222", url("brook", Some(2222), "linerate")),
            ("[fe80::1%eth0]:22", url("fe80::1%eth0", Some(22), "linerate")),
            ("brook/~/linerate", url("brook", None, "~/linerate")),
            ("a.b@[::1]/opt/l-1/linerate", url("a.b@::1", None, "/opt/l-1/linerate")),
        ] {
            assert_eq!(text.parse::<Url>().unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn nothing_reaches_a_shell_or_is_taken_for_an_option() {
        for text in [
            "",
            "/opt/linerate",
            "@brook",
            "-oProxyCommand=x",
            "-l@brook",
            "a b@brook",
            "brook:0",
            "brook:ssh",
            "brook/opt/linerate;reboot",
            "brook/$(reboot)",
            "brook/a b",
            "ann@bob@brook",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
    }

    #[test]
    fn hints_call_where_the_far_end_was_called() {
        let hint = |text: &str, code| text.parse::<Url>().unwrap().unmade(code).hint;
        for (text, call, there, port) in [
            ("brook", "ssh brook", "brook", ""),
            ("ann@brook:2222", "ssh -p 2222 ann@brook", "ann@brook", "2222"),
            ("[fe80::1%eth0]", "ssh fe80::1%eth0", "[fe80::1%eth0]", ""),
            ("ann@[::1]:22", "ssh -p 22 ann@::1", "ann@[::1]", "22"),
        ] {
            let connect = hint(text, Some(SSH_FAILED));
            assert_eq!(connect, format!("{call} true    (must work first)"));
            let older = hint(text, Some(1));
            assert!(older.starts_with(&format!("{call} linerate --version ")), "{older}");
            let (option, of_url) = match port {
                "" => (String::new(), String::new()),
                port => (format!("-P {port} "), format!(":{port}")),
            };
            let brought = hint(text, Some(NO_PROGRAM));
            assert_eq!(
                brought,
                format!(
                    "scp {option}\"$(command -v linerate)\" {there}:linerate; then name it: \
                     ssh://{there}{of_url}/~/linerate"
                )
            );
            // The target that the hint names is the same far end.
            let named = brought.split(SCHEME).nth(1).unwrap();
            let (named, first): (Url, Url) = (named.parse().unwrap(), text.parse().unwrap());
            assert_eq!((named.destination, named.port), (first.destination, first.port));
        }
    }
}
