//! Real labs. A lab's owner must have one thread, so this test has a `main` of its own: each case
//! runs in a process of its own. If the user who runs the tests is root, it runs as an ordinary user,
//! and where rights may matter as root, too.

mod cases;
mod harness;
mod helper;

fn main() {
    if !helper::main() {
        harness::main(cases::OF_RIGHTS, cases::OF_PATHS);
    }
}
