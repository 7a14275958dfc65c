//! The outputs of programs that a case file holds, read as an import reads them.

use linerate_explain::case::{Reported, reported};
use linerate_explain::{Material, explain};
use linerate_import::read as output;

use super::super::import;
use linerate_show::whatif::Told;

/// Results of one path.
pub(super) struct Path {
    /// Differences of the path from the case.
    set: Vec<String>,
    pub(super) material: Material,
}

impl Path {
    /// Whether it is the path of the case itself.
    pub(super) fn is_own(&self) -> bool {
        self.set.is_empty()
    }
}

/// The results that a case file tells, of each path that was measured.
pub(super) fn read(text: &str) -> anyhow::Result<Vec<Path>> {
    reported(text)?.into_iter().map(path).collect()
}

fn path(told: Reported) -> anyhow::Result<Path> {
    let mut material = told.material;
    for one in &told.outputs {
        let bytes = one.text.as_bytes();
        output(bytes).map_err(|why| anyhow::anyhow!("the output `{}`: {why}", one.name))?;
        import::add(&mut material, (&one.name, one.side), bytes);
    }
    Ok(Path { set: told.set, material })
}

/// What the results say.
pub(super) fn explained(paths: &[Path]) -> Vec<Told<'_>> {
    let each = paths.iter().map(|path| Told { set: &path.set, explained: explain(&path.material) });
    each.collect()
}
