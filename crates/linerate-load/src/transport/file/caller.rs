//! Operations as plain calls: each call moves one block, and returns when it is done.

use std::io::{self, IoSlice, IoSliceMut};

use linerate_sys::uring::Access;
use rustix::io::{ReadWriteFlags, preadv2, pwritev2};

use super::Shape;
use super::data::Contents;
use super::disk::checked;
use crate::pages::Pages;

/// Makes calls, from one block of memory.
pub(super) struct Caller {
    shape: Shape,
    pages: Pages,
    contents: Contents,
}

impl Caller {
    /// Allocates the block. It must be called on the thread that makes the calls.
    pub(super) fn new(shape: Shape) -> io::Result<Self> {
        let mut pages = Pages::default();
        pages.ensure(shape.block as usize);
        Ok(Self { pages, contents: Contents::new(1, shape.verify)?, shape })
    }

    /// Makes one operation; returns the number of bytes that were moved.
    #[inline]
    pub(super) fn call(&mut self) -> io::Result<u32> {
        let Self { shape, pages, contents } = self;
        let at = shape.offsets.next() * u64::from(shape.block);
        let (file, block) = (&shape.target.file, pages.bytes_mut());
        let moved = match shape.access {
            Access::Read => {
                let flags = ReadWriteFlags::empty();
                let moved = preadv2(file, &mut [IoSliceMut::new(block)], at, flags)?;
                checked(shape, &block[..moved], at)?;
                moved
            }
            Access::Write { sync } => {
                contents.renew(0, block, at);
                let flags = if sync { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
                pwritev2(file, &[IoSlice::new(block)], at, flags)?
            }
        };
        Ok(moved as u32)
    }
}
