//! Packs columns of integers into bytes.
//!
//! A packed column is one byte that names the order of differences (0: the values, 1: their differences, 2: the
//! differences of the differences), then the residuals as zigzag varints of seven bits to the byte, lowest first. A
//! zero is followed by one byte with the number of further zeros: most counters are constant or grow evenly. The
//! number of values is stored elsewhere.

/// Largest number of values for each byte of a packed column: this bounds the size of a hostile column.
const VALUES_PER_BYTE: usize = 128;

/// Packs `values` with the order of differences that needs the least space.
pub(super) fn pack(values: &[i64]) -> Vec<u8> {
    let mut best = pack_order::<0>(values);
    for other in [pack_order::<1>(values), pack_order::<2>(values)] {
        if other.len() < best.len() {
            best = other;
        }
    }
    best
}

/// The `rows` values packed in `bytes`; `None` if `bytes` hold another number of values, or are invalid.
pub(super) fn unpack(bytes: &[u8], rows: usize) -> Option<Vec<i64>> {
    let (order, residuals) = bytes.split_first()?;
    if rows > residuals.len().saturating_mul(VALUES_PER_BYTE) {
        return None;
    }
    match order {
        0 => unpack_order::<0>(residuals, rows),
        1 => unpack_order::<1>(residuals, rows),
        2 => unpack_order::<2>(residuals, rows),
        _ => None,
    }
}

/// The last value and the last difference, from which the next value is predicted.
#[derive(Default)]
struct Trend {
    value: i64,
    slope: i64,
}

impl Trend {
    /// The difference of `value` from the prediction. The arithmetic wraps around, here and in [`Self::value`].
    fn residual<const ORDER: u8>(&mut self, value: i64) -> i64 {
        let slope = value.wrapping_sub(self.value);
        let residual = match ORDER {
            0 => value,
            1 => slope,
            _ => slope.wrapping_sub(self.slope),
        };
        *self = Self { value, slope };
        residual
    }

    /// The value that is `residual` above the prediction.
    fn value<const ORDER: u8>(&mut self, residual: i64) -> i64 {
        match ORDER {
            0 => self.value = residual,
            1 => self.value = self.value.wrapping_add(residual),
            _ => {
                self.slope = self.slope.wrapping_add(residual);
                self.value = self.value.wrapping_add(self.slope);
            }
        }
        self.value
    }
}

fn pack_order<const ORDER: u8>(values: &[i64]) -> Vec<u8> {
    let mut out = vec![ORDER];
    let mut trend = Trend::default();
    // Place in `out` of the count of the current run of zeros; `None` outside a run.
    let mut run: Option<usize> = None;
    for &value in values {
        let residual = trend.residual::<ORDER>(value);
        match run {
            Some(at) if residual == 0 && out[at] < u8::MAX => out[at] += 1,
            _ if residual == 0 => {
                out.extend([0, 0]);
                run = Some(out.len() - 1);
            }
            _ => {
                push_varint(&mut out, zigzag(residual));
                run = None;
            }
        }
    }
    out
}

fn unpack_order<const ORDER: u8>(mut bytes: &[u8], rows: usize) -> Option<Vec<i64>> {
    let mut out = Vec::with_capacity(rows);
    let mut trend = Trend::default();
    while out.len() < rows {
        let raw = take_varint(&mut bytes)?;
        if raw != 0 {
            out.push(trend.value::<ORDER>(unzigzag(raw)));
            continue;
        }
        let (&more, rest) = bytes.split_first()?;
        bytes = rest;
        let run = usize::from(more) + 1;
        if run > rows - out.len() {
            return None;
        }
        if ORDER == 2 {
            out.extend((0..run).map(|_| trend.value::<ORDER>(0)));
        } else {
            // With orders 0 and 1 the value stays the same.
            out.resize(out.len() + run, trend.value::<ORDER>(0));
        }
    }
    bytes.is_empty().then_some(out)
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}

fn push_varint(out: &mut Vec<u8>, mut raw: u64) {
    while raw >= 0x80 {
        out.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

/// Removes one varint from the front; `None` if it is truncated or longer than 64 bits.
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    // Most residuals have one byte.
    if let Some((&byte, rest)) = bytes.split_first()
        && byte < 0x80
    {
        *bytes = rest;
        return Some(u64::from(byte));
    }
    let mut raw = 0;
    for (n, &byte) in bytes.iter().enumerate().take(10) {
        raw |= u64::from(byte & 0x7f) << (7 * n);
        if byte < 0x80 {
            // The tenth byte has room for one bit of the 64.
            let fits = n < 9 || byte <= 1;
            *bytes = &bytes[n + 1..];
            return fits.then_some(raw);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn steady_counters_cost_next_to_nothing() {
        let still = vec![9000; 6000];
        let even: Vec<i64> = (0..6000).map(|n| 77 + n * 1_000_000).collect();
        assert!(pack(&still).len() < 60);
        assert!(pack(&even).len() < 60);
    }

    #[test]
    fn a_run_cannot_promise_more_than_its_bytes_may() {
        // One residual byte and its count represent at most 256 values.
        assert_eq!(unpack(&[0, 0, 255], 256), Some(vec![0; 256]));
        assert_eq!(unpack(&[0, 0, 255], 257), None);
        assert_eq!(unpack(&[0, 0, 255], 255), None);
        assert_eq!(unpack(&[0, 0, 255], usize::MAX), None);
        assert_eq!(unpack(&[0], usize::MAX), None);
    }

    #[test]
    fn a_varint_has_64_bits_and_not_65() {
        let mut most = &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1][..];
        assert_eq!(take_varint(&mut most), Some(u64::MAX));
        let mut over = &[255, 255, 255, 255, 255, 255, 255, 255, 255, 2][..];
        assert_eq!(take_varint(&mut over), None);
        let mut cut = &[255, 255][..];
        assert_eq!(take_varint(&mut cut), None);
    }

    proptest! {
        #[test]
        fn any_values_come_back(values in prop::collection::vec(any::<i64>(), 0..300)) {
            prop_assert_eq!(unpack(&pack(&values), values.len()), Some(values));
        }

        #[test]
        fn runs_come_back(runs in prop::collection::vec((-3..3_i64, 1..700_usize), 0..8)) {
            let values: Vec<i64> =
                runs.iter().flat_map(|&(v, n)| std::iter::repeat_n(v, n)).collect();
            prop_assert_eq!(unpack(&pack(&values), values.len()), Some(values));
        }

        #[test]
        fn hostile_bytes_give_the_rows_asked_for_or_nothing(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
            rows in 0..2000_usize,
        ) {
            if let Some(values) = unpack(&bytes, rows) {
                prop_assert_eq!(values.len(), rows);
            }
        }
    }
}
