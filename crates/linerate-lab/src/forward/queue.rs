//! Frames that wait for their time, in one piece of memory.

use std::collections::VecDeque;

struct Waiting {
    due: u64,
    start: usize,
    length: usize,
}

/// A queue of byte strings with due times, bounded by the bytes in it. It never allocates for a
/// frame, and never moves one.
pub(super) struct DelayQueue {
    memory: Vec<u8>,
    waiting: VecDeque<Waiting>,
}

impl DelayQueue {
    /// A queue of at most so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            // Zeroed memory takes no room before it is written.
            memory: vec![0; bytes],
            waiting: VecDeque::with_capacity(4096),
        }
    }

    /// Adds a frame behind the others; false if there is no room for it.
    pub(super) fn push(&mut self, due: u64, frame: &[u8]) -> bool {
        let Some(start) = self.room(frame.len()) else {
            return false;
        };
        self.memory[start..start + frame.len()].copy_from_slice(frame);
        self.waiting.push_back(Waiting {
            due,
            start,
            length: frame.len(),
        });
        true
    }

    /// Where the next frame goes: behind the last one, or at the start of the memory.
    fn room(&self, length: usize) -> Option<usize> {
        let (Some(first), Some(last)) = (self.waiting.front(), self.waiting.back()) else {
            return (length <= self.memory.len()).then_some(0);
        };
        let end = last.start + last.length;
        if last.start < first.start {
            return (end + length < first.start).then_some(end);
        }
        if end + length <= self.memory.len() {
            return Some(end);
        }
        (length < first.start).then_some(0)
    }

    /// The frame that has waited longest, and when it is due.
    pub(super) fn front(&self) -> Option<(u64, &[u8])> {
        let first = self.waiting.front()?;
        Some((
            first.due,
            &self.memory[first.start..first.start + first.length],
        ))
    }

    /// Forgets the frame in front.
    pub(super) fn pop(&mut self) {
        self.waiting.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever goes in comes out, in order and unharmed, and what fits is taken.
        #[test]
        fn frames_come_out_as_they_went_in(
            steps in prop::collection::vec((0_usize..40, any::<bool>()), 1..400),
        ) {
            let mut queue = DelayQueue::new(100);
            let mut model: VecDeque<(u64, Vec<u8>)> = VecDeque::new();
            for (number, (length, pop)) in steps.into_iter().enumerate() {
                let frame = vec![number as u8; length];
                let held: usize = model.iter().map(|(_, f)| f.len()).sum();
                if queue.push(number as u64, &frame) {
                    prop_assert!(held + length <= 100);
                    model.push_back((number as u64, frame));
                } else {
                    prop_assert!(held + length + 40 > 50, "{length} refused at {held}");
                }
                if pop {
                    let front = queue.front().map(|(due, f)| (due, f.to_vec()));
                    prop_assert_eq!(front, model.pop_front());
                    queue.pop();
                }
            }
        }
    }

    #[test]
    fn a_full_queue_refuses_and_an_empty_one_takes_its_whole_size() {
        let mut queue = DelayQueue::new(10);
        assert!(queue.push(1, &[1; 10]));
        assert!(!queue.push(2, &[2; 1]));
        queue.pop();
        assert!(!queue.push(3, &[3; 11]));
        assert!(queue.push(4, &[4; 10]));
    }
}
