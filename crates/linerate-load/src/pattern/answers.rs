//! Answers that are received as a stream of bytes in the order of their messages, for transports without loss.

use linerate_sys::clock;

use super::Answer;
use crate::pages::Pages;

/// Size of the receive buffer in bytes if several messages may be in flight, or one message if that is larger.
const SEVERAL: usize = 64 * 1024;

/// The bytes of answers, and the number of messages that were sent and answered in a step.
pub(crate) struct Answers {
    bytes: Pages,
    size: usize,
    /// Size of the receive buffer in bytes.
    room: usize,
    /// Number of bytes of the next answer that were received so far.
    received: usize,
    sent: u64,
    answered: u64,
}

impl Answers {
    /// Makes the state for answers of `size` bytes. With `several`, more than one message may be in flight at a time.
    pub(crate) fn new(size: u32, several: bool) -> Self {
        let size = size as usize;
        Self {
            bytes: Pages::default(),
            size,
            room: if several { SEVERAL.max(size) } else { size },
            received: 0,
            sent: 0,
            answered: 0,
        }
    }

    /// Allocates the receive buffer, and begins a step.
    pub(crate) fn begin(&mut self) {
        self.bytes.ensure(self.room);
        (self.received, self.sent, self.answered) = (0, 0, 0);
    }

    /// Counts a message that was sent.
    #[inline]
    pub(crate) fn note_sent(&mut self) {
        self.sent += 1;
    }

    /// Returns the number of messages that were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns how many bytes of the next answer were not received yet.
    pub(crate) fn missing(&self) -> usize {
        self.size - self.received
    }

    /// Returns the buffer for the bytes that are received next.
    #[inline]
    pub(crate) fn room(&mut self) -> &mut [u8] {
        // If the buffer has the size of one answer, each part is received at its place in the answer.
        let from = if self.room == self.size { self.received } else { 0 };
        &mut self.bytes.bytes_mut()[from..]
    }

    /// Counts bytes that were received, and passes each answer that is now complete to `take`. Returns false if an
    /// answer belongs to no message that was sent.
    #[inline]
    pub(crate) fn add(&mut self, bytes: usize, mut take: impl FnMut(Answer) -> bool) -> bool {
        self.received += bytes;
        if self.received < self.size {
            return true;
        }
        let at = clock::now();
        while self.received >= self.size {
            let answer = Answer { number: self.answered, at, unread: None };
            self.received -= self.size;
            self.answered += 1;
            if self.answered > self.sent || !take(answer) {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(answers: &mut Answers, bytes: usize) -> (bool, Vec<u64>) {
        let mut numbers = Vec::new();
        let good = answers.add(bytes, |answer| {
            numbers.push(answer.number);
            true
        });
        (good, numbers)
    }

    #[test]
    fn answers_are_counted_as_their_bytes_complete_them() {
        let mut answers = Answers::new(10, true);
        answers.begin();
        (0..3).for_each(|_| answers.note_sent());
        assert_eq!(numbers(&mut answers, 9), (true, vec![]));
        assert_eq!(answers.missing(), 1);
        assert_eq!(numbers(&mut answers, 12), (true, vec![0, 1]));
        assert_eq!(numbers(&mut answers, 9), (true, vec![2]));
        assert_eq!(answers.missing(), 10);
        answers.begin();
        assert_eq!(answers.sent(), 0);
    }

    #[test]
    fn an_answer_to_a_message_that_was_not_sent_is_none() {
        let mut answers = Answers::new(10, false);
        answers.begin();
        answers.note_sent();
        assert_eq!(answers.room().len(), 10);
        assert_eq!(numbers(&mut answers, 4), (true, vec![]));
        assert_eq!(answers.room().len(), 6);
        assert_eq!(numbers(&mut answers, 6), (true, vec![0]));
        assert_eq!(numbers(&mut answers, 10), (false, vec![]));
    }
}
