//! The program.

fn main() -> std::process::ExitCode {
    linerate::cli::main()
}
