//! Tests of real labs. A lab's owner must have one thread, so this test has its own `main`, and each case has its own
//! process. If root runs the tests, all cases are run as an ordinary user, and those that may depend on rights also as
//! root.

mod cases;
mod harness;
mod helper;

fn main() {
    if !helper::main() {
        harness::main(cases::OF_RIGHTS, cases::OF_PATHS);
    }
}
