//! Errors of a lab: why it could not be built, or could not carry out a request.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// An error in a lab. The lab's agent sends it to the lab's owner, so its fields can be serialised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum LabError {
    /// This machine does not allow this user to create namespaces.
    #[error("cannot make a {what}: {why} (hint: {hint})")]
    Forbidden {
        /// Kind of namespace, or the step inside it.
        what: String,
        /// Setting that forbids it, with its value, as far as known.
        why: String,
        /// Command that would allow it.
        hint: String,
    },
    /// The caller has more than one thread, and a fork would inherit their locks.
    #[error("cannot build a lab in a process with several threads (build it before starting them)")]
    Threads,
    /// A system call failed.
    #[error("{what}: {}", io::Error::from_raw_os_error(*.errno))]
    Step {
        /// Action that failed, and its object.
        what: String,
        /// Error number of the system call.
        errno: i32,
    },
    /// The lab cannot plant this fault at all, or not at present.
    #[error("cannot plant `{fault}`: {why}")]
    NotPlantable {
        /// The fault as users type it.
        fault: String,
        /// Reason why the fault cannot be planted.
        why: String,
    },
    /// The fault to be removed is not planted.
    #[error("`{fault}` is not planted")]
    NotPlanted {
        /// The fault as users type it.
        fault: String,
    },
    /// The lab does not have this host.
    #[error("this lab has no {host}")]
    NoSuchHost {
        /// Name of the host.
        host: String,
    },
    /// A program could not be started in a host.
    #[error("cannot start `{program}` in {host}: {}", io::Error::from_raw_os_error(*.errno))]
    Spawn {
        program: String,
        /// Name of the host.
        host: String,
        /// Error number of the system call.
        errno: i32,
    },
    /// The lab's agent has ended, and everything in the lab with it.
    #[error("the lab is gone: {why}")]
    Gone {
        /// Error that showed this.
        why: String,
    },
}

impl LabError {
    /// Makes the error of a failed step from an I/O error; `what` names the step.
    pub(crate) fn step(what: impl Into<String>, error: &io::Error) -> Self {
        Self::Step {
            what: what.into(),
            errno: error.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error()),
        }
    }

    /// Makes the error of a fault that cannot be planted.
    pub(crate) fn not_plantable(fault: &Fault, why: &str) -> Self {
        Self::NotPlantable { fault: fault.code(), why: why.to_owned() }
    }

    /// Makes the error that reports the end of the lab's agent.
    pub(crate) fn gone(why: impl Into<String>) -> Self {
        Self::Gone { why: why.into() }
    }
}

/// A kernel setting that can forbid namespaces: its file, its name, and the values that forbid and allow them.
struct Setting {
    path: &'static str,
    name: &'static str,
    forbids: &'static str,
    allows: &'static str,
}

const SETTINGS: &[Setting] = &[
    Setting {
        path: "/proc/sys/kernel/unprivileged_userns_clone",
        name: "kernel.unprivileged_userns_clone",
        forbids: "0",
        allows: "1",
    },
    Setting {
        path: "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        name: "kernel.apparmor_restrict_unprivileged_userns",
        forbids: "1",
        allows: "0",
    },
    Setting {
        path: "/proc/sys/user/max_user_namespaces",
        name: "user.max_user_namespaces",
        forbids: "0",
        allows: "1000",
    },
    Setting {
        path: "/proc/sys/user/max_net_namespaces",
        name: "user.max_net_namespaces",
        forbids: "0",
        allows: "1000",
    },
    Setting {
        path: "/proc/sys/user/max_pid_namespaces",
        name: "user.max_pid_namespaces",
        forbids: "0",
        allows: "1000",
    },
    Setting {
        path: "/proc/sys/user/max_mnt_namespaces",
        name: "user.max_mnt_namespaces",
        forbids: "0",
        allows: "1000",
    },
];

/// Makes the error for a namespace that could not be created, with the setting that forbids it.
pub(crate) fn forbidden(what: &str, error: &io::Error) -> LabError {
    let read = |path: &str| fs::read_to_string(path).ok();
    forbidden_by(what, error, read)
}

fn forbidden_by(what: &str, error: &io::Error, read: impl Fn(&str) -> Option<String>) -> LabError {
    let culprit = SETTINGS
        .iter()
        .find(|setting| read(setting.path).is_some_and(|value| value.trim() == setting.forbids));
    let denied = matches!(
        rustix::io::Errno::from_io_error(error),
        Some(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS | rustix::io::Errno::NOSPC)
    );
    match culprit {
        Some(setting) if denied => LabError::Forbidden {
            what: what.to_owned(),
            why: format!("{} is {}", setting.name, setting.forbids),
            hint: format!("sudo sysctl {}={}", setting.name, setting.allows),
        },
        None if denied => LabError::Forbidden {
            what: what.to_owned(),
            why: format!("{error}, and no setting known to linerate forbids it"),
            hint: "a container's filter may: run outside it, or with its seccomp profile \
                   unconfined and /proc unmasked"
                .to_owned(),
        },
        _ => LabError::step(format!("cannot make a {what}"), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied() -> io::Error {
        rustix::io::Errno::PERM.into()
    }

    #[test]
    fn the_setting_that_forbids_is_named() {
        for setting in SETTINGS {
            let read = |path: &str| (path == setting.path).then(|| setting.forbids.to_owned());
            let error = forbidden_by("user namespace", &denied(), read).to_string();
            assert!(error.contains(setting.name), "{error}");
            let allowed = |path: &str| (path == setting.path).then(|| setting.allows.to_owned());
            let error = forbidden_by("user namespace", &denied(), allowed).to_string();
            assert!(!error.contains(setting.name), "{error}");
        }
    }

    #[test]
    fn a_setting_is_not_blamed_for_another_error() {
        let read = |_: &str| Some("0".to_owned());
        let error = forbidden_by("user namespace", &rustix::io::Errno::NOMEM.into(), read);
        assert!(matches!(error, LabError::Step { .. }), "{error}");
    }
}
