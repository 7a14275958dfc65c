//! Parses the outputs of other programs that a case file holds, as `linerate import` does.

use linerate_explain::case::{Reported, reported};
use linerate_explain::{Material, explain};
use linerate_import::read as output;

use super::super::import;
use linerate_show::whatif::PathResults;

/// The results of one path that a case file holds.
pub(super) struct Path {
    /// Changes that make this path from that of the case, each as `KEY=VALUE`.
    set: Vec<String>,
    pub(super) material: Material,
}

impl Path {
    /// Whether this is the path of the case itself, without changes.
    pub(super) fn is_own(&self) -> bool {
        self.set.is_empty()
    }
}

/// The results in a case file, for each path that was measured.
pub(super) fn read(text: &str) -> anyhow::Result<Vec<Path>> {
    reported(text)?.into_iter().map(path).collect()
}

fn path(reported: Reported) -> anyhow::Result<Path> {
    let mut material = reported.material;
    for one in &reported.outputs {
        let bytes = one.text.as_bytes();
        output(bytes).map_err(|why| anyhow::anyhow!("the output `{}`: {why}", one.name))?;
        import::add(&mut material, (&one.name, one.side), bytes);
    }
    Ok(Path { set: reported.set, material })
}

/// The findings in the results of each path.
pub(super) fn explained(paths: &[Path]) -> Vec<PathResults<'_>> {
    let each =
        paths.iter().map(|path| PathResults { set: &path.set, explained: explain(&path.material) });
    each.collect()
}
