//! The manual page: one page with a section for each verb.

use std::io::{self, Write as _};

use clap::Command;
use clap_mangen::Man;

/// The manual page, in roff.
pub(super) fn page(mut program: Command) -> io::Result<String> {
    program.build();
    let manual = Man::new(program.clone());
    let mut page = Vec::new();
    manual.render_title(&mut page)?;
    manual.render_name_section(&mut page)?;
    manual.render_synopsis_section(&mut page)?;
    manual.render_description_section(&mut page)?;
    manual.render_options_section(&mut page)?;
    for verb in program.get_subcommands() {
        chapter(&mut page, verb)?;
    }
    let after = program.get_after_help().map(ToString::to_string);
    notes(&mut page, &after.unwrap_or_default())?;
    String::from_utf8(page).map_err(io::Error::other)
}

/// Writes a section for a verb and for each verb within it, with its synopsis, description and options.
fn chapter(page: &mut Vec<u8>, verb: &Command) -> io::Result<()> {
    let name = verb.get_bin_name().unwrap_or_else(|| verb.get_name());
    writeln!(page, ".SH \"{}\"", name.to_uppercase())?;
    // Options that every verb has are listed once, in the section of the program.
    let own = verb.clone().mut_args(|arg| {
        let everywhere = arg.is_global_set() || arg.get_id() == "help";
        arg.hide(everywhere)
    });
    let has_options = own.get_arguments().any(|arg| !arg.is_hide_set());
    let manual = Man::new(own);
    let mut section = Vec::new();
    manual.render_synopsis_section(&mut section)?;
    manual.render_description_section(&mut section)?;
    if has_options {
        manual.render_options_section(&mut section)?;
    }
    let section = String::from_utf8(section).map_err(io::Error::other)?;
    for line in section.lines() {
        match line.strip_prefix(".SH ") {
            Some(heading) => writeln!(page, ".SS {heading}")?,
            None => writeln!(page, "{line}")?,
        }
    }
    for within in verb.get_subcommands() {
        chapter(page, within)?;
    }
    Ok(())
}

/// The text at the end of the program's help, with its line breaks kept.
fn notes(page: &mut Vec<u8>, text: &str) -> io::Result<()> {
    writeln!(page, ".SH NOTES\n.nf")?;
    for line in text.lines() {
        // No line of the text begins with a character that roff takes for a command.
        writeln!(page, "{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
    }
    writeln!(page, ".fi")
}
