//! The results of a test, as one end counted them.

use serde_json::{Map, Value, json};

use super::json::{number, object, whole, word};
use super::{Malformed, STREAMS_MAX};

/// Highest possible CPU utilization of a program, in percent of one CPU: all CPUs are busy, and a kernel for x86
/// supports at most 8192.
//= arch/x86/Kconfig, NR_CPUS_RANGE_END: 8192
const CPU_MOST: f64 = 100.0 * 8192.0;
/// Largest possible jitter in seconds where the time of the stream is unknown. Otherwise it is at most that time.
const JITTER_MOST: f64 = 3600.0;

/// Most streams in the results of a test: in a bidirectional test there are [`STREAMS_MAX`] in each direction.
const RESULTS_MAX: usize = 2 * STREAMS_MAX as usize;

/// CPU time that one end's program used, in percent of one CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cpu {
    /// CPU time in the program and in the kernel.
    pub total: f64,
    /// CPU time in the program's own code.
    pub user: f64,
    /// CPU time that the kernel used for the program.
    pub system: f64,
}

/// The counts of one end. Counts that the end did not report are `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    /// CPU time of the end's program.
    pub cpu: Option<Cpu>,
    /// The congestion control that the end used.
    pub congestion: Option<String>,
    /// The end's streams, in the order in which they were made.
    pub streams: Vec<StreamResult>,
}

/// The counts of one end for one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamResult {
    /// Number of the stream: [`stream_id`].
    pub id: u64,
    /// Payload of the stream that the end sent or received, in bytes.
    pub bytes: u64,
    /// Segments that the end retransmitted; `None` for a receiver, which cannot know them.
    pub retransmits: Option<u64>,
    /// Seconds over which the end counted; `None` for servers before 3.2, which do not report it.
    pub seconds: Option<f64>,
    /// Counts of datagrams; for TCP connections iperf3 reports zeros.
    pub datagrams: Datagrams,
}

/// One end's counts of a stream's datagrams; `None` for counts that the end did not report.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Datagrams {
    /// Number of the last datagram that the end sent, or the highest number that it received, omitted datagrams
    /// included.
    pub packets: Option<u64>,
    /// Number of the last datagram that was omitted; 0 for versions before 3.14, which do not report it.
    pub omitted: u64,
    /// Datagrams lost before the last one that the end received; zero for a sender.
    pub errors: Option<u64>,
    /// Jitter, the variation of the transit time, in seconds.
    pub jitter: Option<f64>,
}

/// The number that iperf3 gives to the stream at `index`: 1, 3, 4 and so on, without 2.
//= iperf_api.c, iperf_add_stream
pub fn stream_id(index: usize) -> u64 {
    index as u64 + if index == 0 { 1 } else { 2 }
}

impl Results {
    /// Reads the counts of the other end.
    pub fn decode(json: &[u8]) -> Result<Self, Malformed> {
        let fields = object(json)?;
        let share = |name| number(&fields, name).filter(|share| (0.0..=CPU_MOST).contains(share));
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
        if streams.len() > RESULTS_MAX {
            return Err(Malformed::Streams);
        }
        Ok(Self {
            cpu: cpu(),
            congestion: word(&fields, "congestion_used")?,
            streams: streams.iter().map(stream).collect::<Result<_, _>>()?,
        })
    }

    /// Whether the results have the numbers of the streams of a test with `streams` streams.
    pub fn are_of(&self, streams: usize) -> bool {
        let mut ids: Vec<u64> = self.streams.iter().map(|stream| stream.id).collect();
        ids.sort_unstable();
        ids.into_iter().eq((0..streams).map(stream_id))
    }

    /// Writes the counts of this end, with every field that any version of iperf3 requires.
    pub fn encode(&self) -> Vec<u8> {
        // In a bidirectional test, some streams send and others receive.
        let result_of = |r: &StreamResult| r.retransmits.is_some();
        let sender = self.streams.iter().any(result_of);
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

    /// Datagrams of all streams, without omitted ones, up to the last one that the end sent or received; `None` if a
    /// stream does not report them.
    pub fn packets(&self) -> Option<u64> {
        let each = self.streams.iter().map(|stream| stream.datagrams);
        each.map(|reported| Some(reported.packets?.saturating_sub(reported.omitted)))
            .try_fold(0, |sum: u64, n| Some(sum.saturating_add(n?)))
    }

    /// Datagrams lost in all streams; `None` if a stream does not report them.
    pub fn errors(&self) -> Option<u64> {
        let mut each = self.streams.iter().map(|stream| stream.datagrams.errors);
        each.try_fold(0, |sum: u64, n| Some(sum.saturating_add(n?)))
    }

    /// Jitter, the variation of the transit time, in seconds: the mean over all streams, as iperf3 computes it.
    pub fn jitter(&self) -> Option<f64> {
        let each = self.streams.iter().map(|stream| stream.datagrams.jitter);
        let all: Option<Vec<f64>> = each.collect();
        let all = all.filter(|all| !all.is_empty())?;
        Some(all.iter().sum::<f64>() / all.len() as f64)
    }

    /// The longest measuring time of a stream; `None` if a stream does not report it.
    pub fn seconds(&self) -> Option<f64> {
        let mut longest = None;
        for stream in &self.streams {
            let seconds = stream.seconds?;
            longest = Some(longest.map_or(seconds, |l: f64| l.max(seconds)));
        }
        longest
    }

    /// Segments retransmitted in all streams; `None` if a stream does not report them.
    pub fn retransmits(&self) -> Option<u64> {
        let each = self.streams.iter().map(|stream| stream.retransmits);
        let all: Option<Vec<u64>> = each.collect();
        all.filter(|all| !all.is_empty()).map(|all| all.into_iter().fold(0, u64::saturating_add))
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
        datagrams: datagrams(fields),
    })
}

/// Reads counts of datagrams. Impossible counts are unknown: some versions write -1 as a huge positive number.
fn datagrams(fields: &Map<String, Value>) -> Datagrams {
    let result_of = |name| fields.get(name).and_then(whole);
    let most = seconds(fields).unwrap_or(JITTER_MOST);
    Datagrams {
        packets: result_of("packets"),
        omitted: result_of("omitted_packets").unwrap_or(0),
        errors: result_of("errors"),
        jitter: number(fields, "jitter").filter(|jitter| (0.0..=most).contains(jitter)),
    }
}

/// Seconds from the start to the end of a stream; `None` if the times are missing or invalid.
fn seconds(fields: &Map<String, Value>) -> Option<f64> {
    let passed = number(fields, "end_time")? - number(fields, "start_time")?;
    (passed > 0.0 && passed.is_finite()).then_some(passed)
}

fn written(stream: &StreamResult) -> Value {
    let reported = stream.datagrams;
    json!({
        "id": stream.id,
        "bytes": stream.bytes,
        "retransmits": stream.retransmits.map_or(Value::from(-1), Value::from),
        "jitter": reported.jitter.unwrap_or(0.0),
        // Clients before 3.14 do not know omitted errors: these are left out of `errors`, for all clients.
        "errors": reported.errors.unwrap_or(0),
        "omitted_errors": 0,
        // Clients before 3.14 subtract the number of datagrams that they omitted themselves. Newer clients subtract
        // the number of `omitted_packets`.
        "packets": reported.packets.unwrap_or(0),
        "omitted_packets": reported.omitted,
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
        // Sent by iperf3 3.1.3 as a receiver.
        let reported = br#"{"cpu_util_total":3.1,"cpu_util_user":0.2,"cpu_util_system":2.9,
            "sender_has_retransmits":-1,"streams":[{"id":1,"bytes":1e9,"retransmits":-1,"jitter":0,
            "errors":0,"packets":0}]}"#;
        let results = Results::decode(reported).unwrap();
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
        let many = vec![r#"{"id":1,"bytes":0}"#; RESULTS_MAX + 1].join(",");
        assert_eq!(one(&many), Err(Malformed::Streams));
        let longest =
            of(&format!("{{\"streams\":[{}]}}", many.replacen("{\"id\":1,\"bytes\":0},", "", 1)));
        assert_eq!(longest.unwrap().streams.len(), RESULTS_MAX);
    }

    #[test]
    fn results_are_of_the_streams_of_a_test_in_whatever_order() {
        let of = |ids: &[u64]| {
            let stream = |&id| StreamResult { id, ..StreamResult::default() };
            let results =
                Results { streams: ids.iter().map(stream).collect(), ..Results::default() };
            results.are_of(3)
        };
        assert!(of(&[1, 3, 4]) && of(&[4, 1, 3]));
        for ids in [&[1, 3][..], &[1, 3, 4, 5], &[1, 2, 3], &[1, 3, 3], &[]] {
            assert!(!of(ids), "{ids:?}");
        }
    }

    #[test]
    fn datagrams_are_read_as_iperf3_tells_them() {
        // Sent by iperf3 3.12 as a receiver: it writes -1 as an unsigned number.
        let reported = br#"{"cpu_util_total":2.7,"cpu_util_user":0,"cpu_util_system":2.7,
            "sender_has_retransmits":18446744073709551615,"streams":[
            {"id":1,"bytes":625000,"retransmits":18446744073709551615,"jitter":7.5e-05,"errors":3,
            "packets":628,"start_time":0,"end_time":1.000488},
            {"id":3,"bytes":1000,"retransmits":18446744073709551615,"jitter":2.5e-05,"errors":0,
            "packets":11,"omitted_errors":0,"omitted_packets":10,"start_time":0,"end_time":1.0}]}"#;
        let results = Results::decode(reported).unwrap();
        assert_eq!((results.packets(), results.errors()), (Some(629), Some(3)));
        assert!((results.jitter().unwrap() - 5e-5).abs() < 1e-12);
        assert_eq!(results.retransmits(), None);
    }

    #[test]
    fn loss_that_makes_no_sense_is_not_none() {
        for errors in ["-1", "18446744073709551615", "null", "\"3\""] {
            let reported = format!(
                "{{\"streams\":[{{\"id\":1,\"bytes\":0,\"packets\":7,\"errors\":{errors}}}]}}"
            );
            let results = Results::decode(reported.as_bytes()).unwrap();
            assert_eq!((results.packets(), results.errors()), (Some(7), None));
            assert_eq!(results.jitter(), None);
        }
    }

    #[test]
    fn more_than_all_cpus_is_not_known() {
        for (total, known) in
            [("819200", true), ("819200.1", false), ("1e300", false), ("-0.1", false)]
        {
            let reported = format!(
                r#"{{"cpu_util_total":{total},"cpu_util_user":1,"cpu_util_system":0,"streams":[]}}"#
            );
            let cpu = Results::decode(reported.as_bytes()).unwrap().cpu;
            assert_eq!(cpu.is_some(), known, "{total}");
        }
    }

    #[test]
    fn a_jitter_longer_than_the_test_is_not_known() {
        for (time, jitter, known) in [
            (r#""start_time":0,"end_time":10,"#, "10", true),
            (r#""start_time":0,"end_time":10,"#, "10.001", false),
            ("", "3600", true),
            ("", "3600.1", false),
            ("", "1e300", false),
            ("", "-1", false),
        ] {
            let reported =
                format!(r#"{{"streams":[{{{time}"id":1,"bytes":0,"jitter":{jitter}}}]}}"#);
            let results = Results::decode(reported.as_bytes()).unwrap();
            assert_eq!(results.jitter().is_some(), known, "{time}{jitter}");
        }
    }

    #[test]
    fn streams_are_numbered_as_iperf3_does() {
        let ids: Vec<u64> = (0..4).map(stream_id).collect();
        assert_eq!(ids, [1, 3, 4, 5]);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            bytes in proptest::collection::vec(0..=1u64 << 53, 0..=RESULTS_MAX),
            retransmits in proptest::option::of(0..1u64 << 40),
            eighths in proptest::option::of(1..1u64 << 40),
            packets in 0..=1u64 << 53, omitted in 0..=1u64 << 53, errors in 0..=1u64 << 53,
        ) {
            // Eighths have an exact decimal fraction: JSON is not read exactly to the last digit.
            let seconds = eighths.map(|n| n as f64 / 8.0);
            let streams = bytes.into_iter().enumerate().map(|(at, bytes)| StreamResult {
                id: stream_id(at), bytes, retransmits, seconds,
                datagrams: Datagrams {
                    packets: Some(packets),
                    omitted,
                    errors: Some(errors),
                    jitter: Some(0.125),
                },
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
