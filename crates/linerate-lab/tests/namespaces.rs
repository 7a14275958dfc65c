//! Real labs. A lab's owner must have one thread, so this test has a `main` of its own: each case
//! runs in a process of its own, as the user who runs the tests and, if that is root, also as an
//! ordinary user.

mod cases;
mod harness;
mod helper;

fn main() {
    if !helper::main() {
        harness::main(cases::ALL);
    }
}
