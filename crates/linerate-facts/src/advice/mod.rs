//! Advice: what a user can do about a cause or a finding.

mod tools;

use schemars::JsonSchema;
use serde::Serialize;

use linerate_plan::path::Side;
use linerate_units::shell::word;

/// What to do about a cause: a sentence, the steps that do it, and the steps that undo it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(into = "Document")]
#[schemars(with = "Document")]
pub struct Advice {
    /// What to do: an imperative sentence without a command and without a full stop.
    pub what: String,
    /// The steps, in order. Empty if the sentence in `what` is enough.
    pub steps: Vec<Step>,
    /// The steps that restore the old state, in order. Empty if the advice changes nothing.
    pub undo: Vec<Step>,
    /// Expected goodput over present goodput. `None` if unknown.
    pub gain: Option<f64>,
    /// How this advice relates to the advice listed above it.
    pub joined: Joined,
}

/// One step of an advice: a command, or something that a person does by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "AdviceStep")]
pub struct Step {
    /// The host on which the step is done. Null if the step can be done on any host.
    pub host: Option<Side>,
    /// The effect of the command, without a full stop. Empty if the advice explains it.
    pub about: String,
    /// The command, as one line for a shell. Empty if a person does the step by hand.
    pub command: String,
    /// What the step changes on its host, beyond its end.
    #[serde(skip)]
    pub effect: Effect,
}

/// What a step changes on its host, beyond its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Effect {
    /// The step changes nothing: it shows or measures something, or writes a file of its own.
    #[default]
    Look,
    /// The step changes a setting of the running system, which the next boot resets.
    Set,
    /// The step changes something that is no such setting: a link goes down for a moment, a person edits a file, a
    /// counter starts again.
    Act,
}

/// How an advice relates to the advice listed above it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Joined {
    /// This advice and the one above are alternatives: either is enough.
    #[default]
    Or,
    /// This advice and the one above are both needed.
    And,
    /// This advice helps until the one above is done.
    Until,
}

impl Advice {
    /// An advice that is a sentence without steps.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            steps: Vec::new(),
            undo: Vec::new(),
            gain: None,
            joined: Joined::Or,
        }
    }

    /// Adds a command that changes nothing, on a host; `None` if there is only one machine.
    #[must_use]
    pub fn on(self, host: impl Into<Option<Side>>, command: impl Into<String>) -> Self {
        self.step(Step::on(host, command))
    }

    /// Adds a command that changes a setting of a host; `None` if there is only one machine.
    #[must_use]
    pub fn set(self, host: impl Into<Option<Side>>, command: impl Into<String>) -> Self {
        self.step(Step::set(host, command))
    }

    /// Adds a step at the end.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds a command that restores the old state of a host.
    #[must_use]
    pub fn undo_on(self, host: impl Into<Option<Side>>, command: impl Into<String>) -> Self {
        self.undo(Step::set(host, command))
    }

    /// Adds a step that restores the old state of a host.
    #[must_use]
    pub fn undo(mut self, step: Step) -> Self {
        self.undo.push(step);
        self
    }

    /// Sets the expected gain, goodput after over goodput before; `None` if it is unknown.
    #[must_use]
    pub fn gain(mut self, gain: Option<f64>) -> Self {
        self.gain = gain;
        self
    }

    /// Sets how this advice relates to the advice listed above it.
    #[must_use]
    pub fn joined(mut self, joined: Joined) -> Self {
        self.joined = joined;
        self
    }

    /// Whether the advice has neither a sentence nor steps.
    pub fn is_empty(&self) -> bool {
        self.what.is_empty() && self.steps.is_empty()
    }

    /// The advice in one line of text: its steps, or the sentence if there are none.
    pub fn text(&self) -> String {
        match self.steps.as_slice() {
            [] => self.what.clone(),
            steps => text(steps),
        }
    }

    /// How to undo the advice, in one line of text. Empty if the advice changes nothing.
    pub fn undo_text(&self) -> String {
        text(&self.undo)
    }

    /// Whether the advice changes settings of the running system, which the undo steps restore and the next boot
    /// resets.
    pub fn is_lost_at_boot(&self) -> bool {
        self.steps.iter().any(|step| step.effect == Effect::Set)
    }

    /// Whether the advice has commands and none of them changes anything: then there is nothing to undo.
    pub fn only_looks(&self) -> bool {
        let mut steps = self.steps.iter();
        !self.steps.is_empty() && steps.all(|step| step.effect == Effect::Look)
    }
}

impl Step {
    /// A command that changes nothing, on a host; `None` if there is only one machine.
    pub fn on(host: impl Into<Option<Side>>, command: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            about: String::new(),
            command: command.into(),
            effect: Effect::Look,
        }
    }

    /// A command that changes a setting of a host; `None` if there is only one machine.
    pub fn set(host: impl Into<Option<Side>>, command: impl Into<String>) -> Self {
        Self { effect: Effect::Set, ..Self::on(host, command) }
    }

    /// A command that changes a host but no setting; `None` if there is only one machine.
    pub fn act(host: impl Into<Option<Side>>, command: impl Into<String>) -> Self {
        Self { effect: Effect::Act, ..Self::on(host, command) }
    }

    /// A step that a person does, without a command.
    pub fn by_hand(about: impl Into<String>) -> Self {
        Self::act(None, "").about(about)
    }

    /// Adds an explanation of the step.
    #[must_use]
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }

    /// The step with its host in one line of text: `on near: sudo ...`.
    fn text(&self) -> String {
        let host = self.host.filter(|_| !self.command.is_empty());
        let host = host.map(|side| format!("on {}", side.name()));
        let before = [Some(self.about.clone()).filter(|a| !a.is_empty()), host];
        let before: Vec<String> = before.into_iter().flatten().collect();
        match (before.join(", "), self.command.as_str()) {
            (before, "") => before,
            (before, command) if before.is_empty() => command.to_owned(),
            (before, command) => format!("{before}: {command}"),
        }
    }
}

fn text(steps: &[Step]) -> String {
    let each: Vec<String> = steps.iter().map(Step::text).collect();
    each.join("; ")
}

/// An advice as it is written to JSON.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Advice")]
struct Document {
    /// The steps in one line of text, or a sentence if there are none.
    r#do: String,
    /// How to undo the advice, in one line of text. Empty if the advice changes nothing.
    undo: String,
    /// Expected goodput over present goodput. Null if unknown.
    gain: Option<f64>,
    /// What to do, as a sentence without commands.
    what: String,
    /// The steps that do it, in order.
    steps: Vec<Step>,
    /// The steps that restore the old state, in order.
    undo_steps: Vec<Step>,
    /// Whether the settings that the advice changes are lost at the next boot of their host.
    lost_at_boot: bool,
    /// How this advice relates to the advice listed above it: `or`, `and`, `until`.
    joined: Joined,
}

impl From<Advice> for Document {
    fn from(advice: Advice) -> Self {
        Self {
            r#do: advice.text(),
            undo: advice.undo_text(),
            gain: advice.gain,
            lost_at_boot: advice.is_lost_at_boot(),
            what: advice.what,
            steps: advice.steps,
            undo_steps: advice.undo,
            joined: advice.joined,
        }
    }
}

/// Commands for a setting whose old value must be kept in a file: one writes the file, the other restores the value
/// from it. Both run in the same directory.
pub struct Kept {
    /// The command that writes the old value to the file.
    pub save: String,
    /// The command that restores the old value from the file.
    pub restore: String,
}

impl Kept {
    /// Keeps the value of a sysctl.
    pub fn sysctl(name: &str) -> Self {
        let file = format!("{}-before.txt", name.rsplit('.').next().unwrap_or(name));
        Self {
            save: format!("sysctl {name} | tee {file}"),
            restore: format!("sudo sysctl -p {file}"),
        }
    }

    /// Keeps files of one line each, which the shell pattern `pattern` matches.
    pub fn files(pattern: &str, file: &str) -> Self {
        Self::lines(&format!("grep -H . {pattern}"), file)
    }

    /// Keeps files of one line each. The command `show` prints them as `PATH:LINE`.
    pub fn lines(show: &str, file: &str) -> Self {
        Self {
            save: format!("{show} | tee {file}"),
            restore: format!(
                "while IFS=: read -r path value; do echo \"$value\" | sudo tee \"$path\"; done < {file}"
            ),
        }
    }
}

impl Advice {
    /// Adds a command that changes a setting on a host, with commands that save the old value and restore it.
    #[must_use]
    pub fn keeping(
        self,
        host: impl Into<Option<Side>>,
        kept: Kept,
        command: impl Into<String>,
    ) -> Self {
        let host = host.into();
        self.step(Step::on(host, kept.save).about("save the old values"))
            .set(host, command)
            .undo(Step::set(host, kept.restore).about("in the same directory"))
    }

    /// Adds commands that replace the queue of a port. The undo may be incomplete: not all options of the old queue are
    /// known.
    #[must_use]
    pub fn replacing_queue(self, side: Side, port: &str, kind: &str) -> Self {
        let port = word(port);
        let back = Step::set(side, format!("sudo tc qdisc del dev {port} root"));
        let about = "the port gets its default queue; if qdisc-before.txt shows another one, set it as there";
        self.step(save_queue(side, &port))
            .set(side, format!("sudo tc qdisc replace dev {port} root {kind}"))
            .undo(back.about(about))
    }
}

/// A step that saves the queueing disciplines of a port to a file.
pub fn save_queue(side: Side, port: &str) -> Step {
    let saved = save(&format!("tc -d qdisc show dev {port}"), "qdisc-before.txt");
    Step { host: Some(side), ..saved.about("save the old settings") }
}

/// A step that runs the command `show` and writes its output to a file, where there is only one machine.
pub(crate) fn save(show: &str, file: &str) -> Step {
    Step::on(None, format!("{show} | tee {file}"))
}
