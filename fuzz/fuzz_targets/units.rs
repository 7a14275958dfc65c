#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_units::{Bytes, Nanos, Rate};

fuzz_target!(|text: &str| {
    if let Ok(bytes) = text.parse::<Bytes>() {
        assert!(bytes.to_string().parse::<Bytes>().is_ok());
    }
    if let Ok(rate) = text.parse::<Rate>() {
        assert!(rate.to_string().parse::<Rate>().is_ok());
    }
    if let Ok(time) = text.parse::<Nanos>() {
        assert!(time.to_string().parse::<Nanos>().is_ok());
    }
});
