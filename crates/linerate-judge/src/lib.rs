//! The judge: what a record means, and what holds its path back.
//!
//! Owns the model of a record ([`model`]), the figures that sum it up ([`figure`]), the causes with their
//! predictions ([`causes`]), the trials that separate them ([`trial`]), and the verdict ([`verdict`]). All of it is
//! pure: the same record gives the same answer. Each module uses only those before it in this list, and symptoms
//! that several causes share are in `signs`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod causes;
pub mod event;
pub mod figure;
pub mod model;
mod signs;
pub mod study;
pub mod trial;
pub mod verdict;

pub use signs::lossy::loss_leaves;
