//! The program `linerate`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    linerate::cli::main()
}
