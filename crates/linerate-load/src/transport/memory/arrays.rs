//! The arrays of one thread, and how operations access them.

use std::hint::black_box;
use std::ops::Range;

use linerate_facts::Gap;
use linerate_plan::Access;
use linerate_sys::array::{Array, read};
use linerate_sys::clock;
use linerate_units::Bytes;

use super::Place;
use crate::pattern::operations::Target;
use crate::{LoadError, Probe};

/// Sizes of the pieces in which arrays are accessed, in bytes. With the first size, `memcpy` of glibc uses string
/// instructions on processors that execute them fast. With the second size, `memcpy` bypasses the caches if the size is
/// at least three quarters of a last-level cache. Which one is faster depends on the processor: 15.1 and 13.1 GB/s on
/// an EPYC 9004 guest, measured in turn. The second size is limited so that a stop is noticed: 64 ms at 1 GB/s.
//= glibc, sysdeps/x86/dl-cacheinfo.h: rep_movsb_threshold, rep_movsb_stop_threshold, non_temporal_threshold
const PIECES: [usize; 2] = [256 << 10, 64 << 20];
/// Number of tries of each piece size, and the most bytes that one try accesses.
const TRIALS: usize = 3;
const TRIED: u64 = 256 << 20;
/// Fewest bytes of an operation: an operation accesses smaller arrays several times, so that calls cost little.
const LEAST: usize = 256 << 10;

/// The arrays of a thread.
pub(super) struct Arrays {
    place: Place,
    size: Bytes,
    /// Kind of access: read, write or copy.
    access: Access,
    /// Array that is read or written, or from which copies are read; `None` before the first step.
    main: Option<Array>,
    /// Array to which copies are written; `None` for other kinds of access.
    copied: Option<Array>,
    /// Size of a piece in bytes. The last piece of an array may be smaller.
    piece: usize,
    /// Offset of the next piece in the arrays.
    at: usize,
}

impl Arrays {
    pub(super) fn new(place: Place, size: Bytes, access: Access) -> Self {
        Self { place, size, access, main: None, copied: None, piece: PIECES[0], at: 0 }
    }

    /// Allocates the arrays, and chooses the piece size that is faster.
    fn make(&mut self) -> Result<(), LoadError> {
        self.main = Some(self.place.array(self.size)?);
        if self.access == Access::Copy {
            self.copied = Some(self.place.array(self.size)?);
        }
        let mut tried = PIECES.map(|piece| (u64::MAX, piece));
        for _ in 0..TRIALS {
            for (least, piece) in &mut tried {
                *least = self.try_out(*piece).min(*least);
            }
        }
        self.piece = tried.into_iter().min().map_or(PIECES[0], |(_, piece)| piece);
        self.at = 0;
        Ok(())
    }

    /// Accesses the arrays, at most `TRIED` bytes, in pieces of this size; returns the time in nanoseconds.
    fn try_out(&mut self, piece: usize) -> u64 {
        (self.piece, self.at) = (piece, 0);
        let began = clock::now();
        let (mut moved, all) = (0, self.size.0.min(TRIED));
        while moved < all {
            moved += u64::from(self.go_on(self.access));
        }
        clock::now() - began
    }

    /// Returns the range of the next piece in arrays of `len` bytes.
    fn turn(&mut self, len: usize) -> Range<usize> {
        let piece = self.at..len.min(self.at + self.piece);
        self.at = if piece.end == len { 0 } else { piece.end };
        piece
    }

    /// Accesses the next pieces; returns their size in bytes, which is more than zero.
    fn go_on(&mut self, access: Access) -> u32 {
        let len = self.main.as_ref().map_or(0, |array| array.len());
        let mut moved = 0;
        while moved < LEAST {
            let piece = self.turn(len);
            moved += piece.len().max(1);
            match (access, &mut self.main, &mut self.copied) {
                // `black_box` keeps the compiler from removing accesses whose result is unused.
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
        moved as u32
    }
}

impl Target for Arrays {
    fn begin(&mut self) -> Result<Vec<Gap>, LoadError> {
        if self.main.is_none() {
            self.make()?;
        }
        let arrays = self.main.iter().chain(&self.copied);
        Ok(self.place.astray(arrays).into_iter().collect())
    }

    fn access(&mut self, access: Access) -> Result<u32, LoadError> {
        Ok(self.go_on(access))
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        self.place.halt.probes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::halt::Halt;
    use super::*;

    fn made(size: u64, access: Access) -> Arrays {
        let place = Place { stream: 0, node: None, several: false, halt: Halt::default() };
        let mut arrays = Arrays::new(place, Bytes(size), access);
        arrays.begin().unwrap();
        arrays
    }

    #[test]
    fn pieces_cover_an_array_once_in_order_whatever_their_size() {
        for (size, piece) in [(1000, 1000), (1000, 64), (1000, 999), (64, 4096)] {
            let mut arrays = made(size, Access::Read);
            (arrays.piece, arrays.at) = (piece, 0);
            let mut end = 0;
            loop {
                let piece = arrays.turn(size as usize);
                assert_eq!(piece.start, end);
                assert!(piece.end > piece.start);
                end = piece.end;
                if arrays.at == 0 {
                    break;
                }
            }
            assert_eq!(end, size as usize);
        }
    }

    #[test]
    fn one_of_the_sizes_is_chosen_and_a_copy_copies() {
        let mut arrays = made(1 << 20, Access::Copy);
        assert!(PIECES.contains(&arrays.piece) && arrays.at == 0);
        arrays.main.as_mut().unwrap().fill(9);
        arrays.access(Access::Copy).unwrap();
        let copied = arrays.copied.as_ref().unwrap();
        assert!(copied[..256 << 10].iter().all(|byte| *byte == 9));
        let arrays = made(4096, Access::Write);
        assert!(arrays.copied.is_none() && arrays.main.unwrap().iter().all(|byte| *byte == 0x5a));
    }
}
