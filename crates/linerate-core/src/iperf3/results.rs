//! What one side counted.

use serde_json::{Map, Value, json};

use super::json::{number, object, whole, word};
use super::{Malformed, STREAMS_MAX};

/// Share of one CPU that a side's program used, in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cpu {
    /// In all.
    pub total: f64,
    /// In the program.
    pub user: f64,
    /// In the kernel on its behalf.
    pub system: f64,
}

/// What one side counted. What it did not tell is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    /// CPU of its program.
    pub cpu: Option<Cpu>,
    /// The congestion control that it used.
    pub congestion: Option<String>,
    /// Its streams, in the order in which they were made.
    pub streams: Vec<StreamResult>,
}

/// What one side counted of one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamResult {
    /// Number of the stream: [`stream_id`].
    pub id: u64,
    /// Payload that it sent or received, in bytes.
    pub bytes: u64,
    /// Segments that it sent again; a receiver cannot tell.
    pub retransmits: Option<u64>,
    /// Seconds that it counted for; servers before 3.2 do not say.
    pub seconds: Option<f64>,
}

/// The number that iperf3 gives to a stream; two is left out.
//= iperf_api.c, iperf_add_stream
pub fn stream_id(index: usize) -> u64 {
    index as u64 + if index == 0 { 1 } else { 2 }
}

impl Results {
    /// Reads what the other side counted.
    pub fn decode(json: &[u8]) -> Result<Self, Malformed> {
        let fields = object(json)?;
        let share = |name| number(&fields, name).filter(|share| *share >= 0.0);
        let cpu = || {
            Some(Cpu {
                total: share("cpu_util_total")?,
                user: share("cpu_util_user")?,
                system: share("cpu_util_system")?,
            })
        };
        let Some(Value::Array(streams)) = fields.get("streams") else {
            return Err(Malformed::Field("streams"));
        };
        if streams.len() > STREAMS_MAX as usize {
            return Err(Malformed::Streams);
        }
        Ok(Self {
            cpu: cpu(),
            congestion: word(&fields, "congestion_used")?,
            streams: streams.iter().map(stream).collect::<Result<_, _>>()?,
        })
    }

    /// Writes what this side counted: with all fields that some version of iperf3 insists on.
    pub fn encode(&self) -> Vec<u8> {
        let told = |r: &StreamResult| r.retransmits.is_some();
        let sender = !self.streams.is_empty() && self.streams.iter().all(told);
        let cpu = self.cpu.unwrap_or_default();
        let streams: Vec<Value> = self.streams.iter().map(written).collect();
        let mut fields = json!({
            "cpu_util_total": cpu.total,
            "cpu_util_user": cpu.user,
            "cpu_util_system": cpu.system,
            "sender_has_retransmits": if sender { 1 } else { -1 },
            "streams": streams,
        });
        if let Some(name) = &self.congestion {
            fields["congestion_used"] = Value::from(name.as_str());
        }
        fields.to_string().into_bytes()
    }

    /// Payload of all streams, in bytes.
    pub fn bytes(&self) -> u64 {
        let each = self.streams.iter().map(|stream| stream.bytes);
        each.fold(0, u64::saturating_add)
    }

    /// The longest time that a stream counted for; `None` where one of them does not say.
    pub fn seconds(&self) -> Option<f64> {
        let mut longest = None;
        for stream in &self.streams {
            let seconds = stream.seconds?;
            longest = Some(longest.map_or(seconds, |l: f64| l.max(seconds)));
        }
        longest
    }

    /// Segments that were sent again; `None` where one of the streams does not say.
    pub fn retransmits(&self) -> Option<u64> {
        let each = self.streams.iter().map(|stream| stream.retransmits);
        let all: Option<Vec<u64>> = each.collect();
        all.filter(|all| !all.is_empty())
            .map(|all| all.into_iter().fold(0, u64::saturating_add))
    }
}

fn stream(value: &Value) -> Result<StreamResult, Malformed> {
    let fields = value.as_object().ok_or(Malformed::Field("streams"))?;
    let need = |name| {
        let found = fields.get(name).and_then(whole);
        found.ok_or(Malformed::Field(name))
    };
    Ok(StreamResult {
        id: need("id")?,
        bytes: need("bytes")?,
        retransmits: fields.get("retransmits").and_then(whole),
        seconds: seconds(fields),
    })
}

/// From start to end; `None` where that is no time.
fn seconds(fields: &Map<String, Value>) -> Option<f64> {
    let passed = number(fields, "end_time")? - number(fields, "start_time")?;
    (passed > 0.0 && passed.is_finite()).then_some(passed)
}

fn written(stream: &StreamResult) -> Value {
    json!({
        "id": stream.id,
        "bytes": stream.bytes,
        "retransmits": stream.retransmits.map_or(Value::from(-1), Value::from),
        "jitter": 0,
        "errors": 0,
        "omitted_errors": 0,
        "packets": 0,
        "omitted_packets": 0,
        "start_time": 0,
        "end_time": stream.seconds.unwrap_or(0.0),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_an_old_server_leaves_out_is_unknown() {
        // iperf3 3.1.3 as a receiver.
        let told = br#"{"cpu_util_total":3.1,"cpu_util_user":0.2,"cpu_util_system":2.9,
            "sender_has_retransmits":-1,"streams":[{"id":1,"bytes":1e9,"retransmits":-1,"jitter":0,
            "errors":0,"packets":0}]}"#;
        let results = Results::decode(told).unwrap();
        assert_eq!(results.bytes(), 1_000_000_000);
        assert_eq!((results.seconds(), results.retransmits()), (None, None));
        assert_eq!(results.congestion, None);
        assert!(results.cpu.unwrap().total > 3.0);
    }

    #[test]
    fn what_makes_no_sense_is_refused_or_unknown() {
        let of = |text: &str| Results::decode(text.as_bytes());
        assert_eq!(of("{}"), Err(Malformed::Field("streams")));
        let one = |stream: &str| of(&format!("{{\"streams\":[{stream}]}}"));
        assert_eq!(one(r#"{"id":1}"#), Err(Malformed::Field("bytes")));
        assert!(one(r#"{"id":1,"bytes":-5}"#).is_err());
        let back = one(r#"{"id":1,"bytes":5,"start_time":9,"end_time":3}"#).unwrap();
        assert_eq!(back.seconds(), None);
        let many = vec![r#"{"id":1,"bytes":0}"#; STREAMS_MAX as usize + 1].join(",");
        assert_eq!(one(&many), Err(Malformed::Streams));
        let longest = of(&format!(
            "{{\"streams\":[{}]}}",
            many.replacen("{\"id\":1,\"bytes\":0},", "", 1)
        ));
        assert_eq!(longest.unwrap().streams.len(), STREAMS_MAX as usize);
    }

    #[test]
    fn streams_are_numbered_as_iperf3_does() {
        let ids: Vec<u64> = (0..4).map(stream_id).collect();
        assert_eq!(ids, [1, 3, 4, 5]);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            bytes in proptest::collection::vec(0..=1u64 << 53, 0..=128),
            retransmits in proptest::option::of(0..1u64 << 40),
            eighths in proptest::option::of(1..1u64 << 40),
        ) {
            // Exact in decimal: JSON is read to the last digit but one.
            let seconds = eighths.map(|n| n as f64 / 8.0);
            let streams = bytes.into_iter().enumerate().map(|(at, bytes)| StreamResult {
                id: stream_id(at), bytes, retransmits, seconds,
            });
            let results = Results {
                cpu: Some(Cpu { total: 3.5, user: 1.0, system: 2.5 }),
                congestion: Some("cubic".to_owned()),
                streams: streams.collect(),
            };
            let json = results.encode();
            prop_assert!(json.len() <= super::super::JSON_MAX);
            prop_assert_eq!(Results::decode(&json), Ok(results));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
            let _ = Results::decode(&bytes);
        }
    }
}
