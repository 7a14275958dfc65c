//! A queue of delayed frames, in one piece of memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

struct Waiting {
    start: usize,
    length: usize,
    /// Whether the frame was removed; its memory is freed once all frames before it were removed too.
    left: bool,
}

/// A queue of byte strings with due times. The bytes in it are limited, and a frame is never moved in memory.
pub(super) struct DelayQueue {
    memory: Vec<u8>,
    waiting: VecDeque<Waiting>,
    /// Number of the first frame in `waiting`; frames are numbered as they are added.
    first: u64,
    /// Due time and number of each frame, the earliest first.
    due: BinaryHeap<Reverse<(u64, u64)>>,
}

impl DelayQueue {
    /// Makes a queue that holds at most `bytes` bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            // Zeroed memory uses no pages before it is written.
            memory: vec![0; bytes],
            waiting: VecDeque::with_capacity(4096),
            first: 0,
            due: BinaryHeap::with_capacity(4096),
        }
    }

    /// Adds a frame; returns false if there is no room for it.
    pub(super) fn push(&mut self, due: u64, frame: &[u8]) -> bool {
        let Some(start) = self.room(frame.len()) else {
            return false;
        };
        self.memory[start..start + frame.len()].copy_from_slice(frame);
        let number = self.first + self.waiting.len() as u64;
        self.due.push(Reverse((due, number)));
        self.waiting.push_back(Waiting { start, length: frame.len(), left: false });
        true
    }

    /// Returns the offset at which the next frame fits: after the last frame, or at the start of the memory.
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

    /// Returns the frame that is due first, with its due time; of several, the one that was added first.
    pub(super) fn front(&self) -> Option<(u64, &[u8])> {
        let Reverse((due, number)) = self.due.peek()?;
        let next = &self.waiting[(number - self.first) as usize];
        Some((*due, &self.memory[next.start..next.start + next.length]))
    }

    /// Removes the frame that is due first.
    pub(super) fn pop(&mut self) {
        let Some(Reverse((_, number))) = self.due.pop() else {
            return;
        };
        self.waiting[(number - self.first) as usize].left = true;
        while self.waiting.front().is_some_and(|first| first.left) {
            self.waiting.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each frame that is added is removed in the order of due times, with its bytes unchanged.
        #[test]
        fn frames_come_out_when_they_are_due(
            steps in prop::collection::vec((0_usize..40, 0_u64..20, any::<bool>()), 1..400),
        ) {
            let mut queue = DelayQueue::new(200);
            let mut model: Vec<(u64, usize, Vec<u8>)> = Vec::new();
            for (number, (length, due, pop)) in steps.into_iter().enumerate() {
                let frame = vec![number as u8; length];
                if queue.push(due, &frame) {
                    model.push((due, number, frame));
                    model.sort();
                }
                if pop {
                    let front = queue.front().map(|(due, f)| (due, f.to_vec()));
                    let first = (!model.is_empty()).then(|| model.remove(0));
                    prop_assert_eq!(front, first.map(|(due, _, frame)| (due, frame)));
                    queue.pop();
                }
            }
        }

        /// All frames that fit are accepted, and are removed in order and unchanged.
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
