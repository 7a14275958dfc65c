//! The document of a walk, as tests use it: nodes are found by name, never by LID.

use std::process::Output;

use serde_json::Value;

/// The document of a walk.
#[derive(Debug)]
pub(crate) struct Seen(Value);

/// A problem: its id, its subject, and whether it still exists or is a past one.
pub(crate) type Problem<'a> = (&'a str, &'a str, bool);

impl Seen {
    /// Parses the document of a complete walk.
    ///
    /// # Panics
    /// If the program failed.
    #[track_caller]
    pub(crate) fn of(output: &Output) -> Self {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*errors), (Some(0), ""));
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(seen["complete"], true);
        Self(seen)
    }

    pub(crate) fn problems(&self) -> Vec<Problem<'_>> {
        let all = self.0["findings"].as_array().unwrap();
        let read = all.iter().map(|problem| {
            let [id, subject] = ["id", "subject"].map(|key| problem[key].as_str().unwrap());
            (id, subject, problem["stands"] == "found")
        });
        read.collect()
    }

    /// The problem with this id; there must be exactly one.
    #[track_caller]
    pub(crate) fn problem(&self, id: &str) -> &Value {
        let all = self.0["findings"].as_array().unwrap();
        let found: Vec<&Value> = all.iter().filter(|problem| problem["id"] == id).collect();
        assert_eq!(found.len(), 1, "{id} in {:?}", self.problems());
        found[0]
    }

    /// The port with this number, of the node with this name.
    #[track_caller]
    pub(crate) fn port(&self, node: &str, number: u64) -> &Value {
        let nodes = self.0["nodes"].as_array().unwrap();
        let index = nodes.iter().position(|of| of["name"] == node).unwrap();
        let ports = self.0["ports"].as_array().unwrap();
        let is_it = |port: &&Value| port["node"] == index && port["port"] == number;
        ports.iter().find(is_it).unwrap()
    }

    /// The number of nodes and the number of links.
    pub(crate) fn size(&self) -> (usize, usize) {
        let ports = self.0["ports"].as_array().unwrap();
        let ends = ports.iter().filter(|port| !port["peer"].is_null()).count();
        (self.0["nodes"].as_array().unwrap().len(), ends / 2)
    }

    /// The GUID of the node across the cable of a port.
    #[track_caller]
    pub(crate) fn guid_across(&self, node: &str, number: u64) -> &str {
        let peer = &self.port(node, number)["peer"];
        let index = peer["node"].as_u64().unwrap() as usize;
        self.0["nodes"][index]["guid"].as_str().unwrap()
    }
}
