//! The arrays of a thread, and the ways to go through them.

use std::hint::black_box;
use std::ops::Range;

use linerate_core::facts::Gap;
use linerate_core::plan::Access;
use linerate_core::units::Bytes;
use linerate_sys::array::{Array, read};

use super::Place;
use crate::load::LoadError;
use crate::load::pattern::operations::Target;

/// Most bytes that are moved in one go, so that a stop is seen: 64 ms at 1 GB/s. From some size on, about three quarters
/// of a last cache, `memcpy` of glibc goes around the caches.
//= glibc, sysdeps/x86/dl-cacheinfo.h: non_temporal_threshold
const MOST: usize = 64 << 20;
/// Least bytes: arrays that are smaller are gone through again and again, so that calls cost little.
const LEAST: usize = 256 << 10;

/// The arrays of a thread.
pub(super) struct Arrays {
    place: Place,
    size: Bytes,
    /// The array that is read, or written. Empty before the first step, as the other one.
    main: Option<Array>,
    /// Where copies go.
    copied: Option<Array>,
    /// Whether there are to be two.
    two: bool,
    /// Bytes of each piece but the last.
    piece: usize,
    /// Where the next piece begins.
    at: usize,
}

impl Arrays {
    pub(super) fn new(place: Place, size: Bytes, two: bool) -> Self {
        let len = usize::try_from(size.0).unwrap_or(usize::MAX);
        let pieces = len.div_ceil(MOST).max(1);
        Self {
            place,
            size,
            main: None,
            copied: None,
            two,
            piece: len.div_ceil(pieces),
            at: 0,
        }
    }

    /// The next piece of arrays that are `len` long.
    fn turn(&mut self, len: usize) -> Range<usize> {
        let piece = self.at..len.min(self.at + self.piece);
        self.at = if piece.end == len { 0 } else { piece.end };
        piece
    }
}

impl Target for Arrays {
    fn begin(&mut self) -> Result<Vec<Gap>, LoadError> {
        for array in [
            Some(&mut self.main),
            Some(&mut self.copied).filter(|_| self.two),
        ] {
            if let Some(array @ None) = array {
                *array = Some(self.place.array(self.size)?);
            }
        }
        let arrays = self.main.iter().chain(&self.copied);
        Ok(self.place.astray(arrays).into_iter().collect())
    }

    fn access(&mut self, access: Access) -> Result<u32, LoadError> {
        let len = self.main.as_ref().map_or(0, |array| array.len());
        let mut moved = 0;
        while moved < LEAST && len > 0 {
            let piece = self.turn(len);
            moved += piece.len();
            match (access, &mut self.main, &mut self.copied) {
                // What nobody looks at would be left out of the program.
                (Access::Write, Some(main), _) => black_box(&mut main[piece]).fill(0x5a),
                (Access::Copy, Some(main), Some(copied)) => {
                    black_box(&mut copied[piece.clone()]).copy_from_slice(&main[piece]);
                }
                (_, Some(main), _) => {
                    black_box(read(black_box(&main[piece])));
                }
                (_, None, _) => {}
            }
        }
        Ok(moved as u32)
    }
}
