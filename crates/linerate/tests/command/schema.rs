//! Documents against the schemas that are published for them, and against those that were written by hand.

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

macro_rules! by_hand {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../schemas/", $name, ".schema.json")))),*]
    };
}

/// The schemas as they were written by hand, before they were made from the types.
const BY_HAND: [(&str, &str); 10] =
    by_hand!("run", "repeat", "stream", "diff", "bw", "sweep", "lat", "host", "flows", "whatif");

const RULED_OUT: &str = "what a case says rules hardware out";
const EQUAL_CEILINGS: &str = "equal ceilings are one candidate";
const FIGURES: &str = "every figure in one form";

/// Keys that were added since: schema, place, and why. `*` stands for each element of a list.
const ADDED: &[(&str, &str, &str)] = &[
    ("run", "/verdict/headline", HEADLINE),
    ("run", "/verdict/disturbances", DISTURBANCES),
    ("run", "/figures", FIGURES),
    ("repeat", "/figures", FIGURES),
    ("run", "/refused", "settings that an end refused"),
    ("bw", "/figures", FIGURES),
    ("lat", "/figures", FIGURES),
    ("lat", "/mean_ns", EXACT),
    ("lat", "/deviation_ns", EXACT),
    ("lat", "/nagle", WRITES),
    ("lat", "/two_writes", WRITES),
    ("lat", "/delayed_ns", WRITES),
    ("sweep", "/fit", "what times by size show"),
    ("whatif", "/sweeps/*/timer", "a timer that sets the times"),
    ("whatif", "/sweeps/*/fit/excluded", RULED_OUT),
    ("whatif", "/sweeps/*/fit/stated", RULED_OUT),
    ("whatif", "/sweeps/*/fit/candidates/*/names", EQUAL_CEILINGS),
    ("whatif", "/sweeps/*/fit/candidates/*/margin", RULED_OUT),
    ("whatif", "/sweeps/*/fit/candidates/*/known", RULED_OUT),
    ("diff", "/rows", "rows of results that both records have"),
    ("bw", "/options", OPTIONS),
    ("lat", "/options", OPTIONS),
    ("sweep", "/options", OPTIONS),
    ("sweep", "/bandwidth_delay", QUEUES),
    ("sweep", "/settings/*/depth", QUEUES),
    ("sweep", "/settings/*/queue_pairs", QUEUES),
    ("sweep", "/engine", MEMORY),
    ("sweep", "/falls", MEMORY),
    ("bw", "/memory", MEMORY),
    ("bw", "/rdma", RDMA),
    ("lat", "/rdma", RDMA),
    ("lat", "/array_bytes", MEMORY),
    ("lat", "/mean_load_ns", MEMORY),
    ("diff", "/figures/*/better", FIGURES),
    ("repeat", "/headline", HEADLINE),
    ("repeat", "/unknown", "directions without a known limit"),
    ("repeat", "/disturbances", DISTURBANCES),
    ("diff", "/disturbances", DISTURBANCES),
    ("bw", "/flows/*/held/nagle", NAGLE),
    ("bw", "/flows/*/disturbances", DISTURBANCES),
    ("bw", "/flows/*/notes", TUNNEL),
    ("bw", "/flows/*/packet_bytes", TUNNEL),
    ("flows", "/flows/*/held/nagle", NAGLE),
    ("flows", "/flows/*/disturbances", DISTURBANCES),
    ("flows", "/flows/*/notes", TUNNEL),
    ("flows", "/flows/*/packet_bytes", TUNNEL),
    ("host", "/live_fragments", TUNNEL),
    ("host", "/pci/*/tunnel", "links through a Thunderbolt cable"),
    ("host", "/ports/*/threaded", "threaded NAPI"),
    ("whatif", "/results", "published results"),
    ("whatif", "/published/*/relation", RELATION),
    ("whatif", "/published/*/change", RELATION),
    ("host", "/ports/*/usb_hubs", "hubs of USB adapters"),
    ("host", "/ports/*/counter_meanings", "what counters count"),
    ("host", "/ports/*/tunnel", TUNNEL),
    ("host", "/rdma/*/node_guid", INFINIBAND),
    ("host", "/rdma/*/board_meaning", INFINIBAND),
    ("host", "/rdma/*/virtual_of", INFINIBAND),
    ("host", "/rdma/*/software", INFINIBAND),
    ("host", "/rdma/*/ports/*/nominal_bps", INFINIBAND),
    ("host", "/rdma/*/ports/*/guid", INFINIBAND),
    ("host", "/ports/*/hardware_address", ADDRESSES),
    ("host", "/ports/*/addresses", ADDRESSES),
    ("host", "/ports/*/aggregator", LACP),
    ("host", "/ports/*/bond/aggregator", LACP),
    ("host", "/ports/*/bond/partner", LACP),
    ("host", "/ports/*/live_errors/rx_packets", "the share of packets that were dropped"),
    ("host", "/pci/*/iommu", "how an IOMMU translates"),
    ("host", "/conntrack", "the table of connections"),
    ("host", "/odd/*/brief", ADVICE),
    ("host", "/odd/*/limits", ADVICE),
    ("host", "/odd/*/advice", ADVICE),
    ("host", "/odd/*/steps", ADVICE),
    ("host", "/odd/*/undo_steps", ADVICE),
    ("host", "/odd/*/lost_at_boot", ADVICE),
    ("host", "/disks/*/paths/*/ana_state", NVME),
    ("host", "/disks/*/paths/*/device", NVME),
    ("host", "/volumes/*/paths/*/ana_state", NVME),
    ("host", "/volumes/*/paths/*/device", NVME),
];

const RELATION: &str = "relations that are derived";
const EXACT: &str = "sums to the nanosecond";
const WRITES: &str = "Nagle's algorithm, and messages of two writes";
const ADVICE: &str = "what to do, with commands apart";
const OPTIONS: &str = "options of engines";
const RDMA: &str = "the ports of RDMA devices";
const MEMORY: &str = "the memory of this host";
const HEADLINE: &str = "the answer to read first";
const DISTURBANCES: &str = "what disturbs a measurement";
const NAGLE: &str = "time held by Nagle's algorithm";
const ADDRESSES: &str = "addresses of ports";
const LACP: &str = "aggregators of LACP";
const TUNNEL: &str = "packets that are too large for a tunnel";
const INFINIBAND: &str = "InfiniBand subnets and virtual functions";
const QUEUES: &str = "requests in flight, and queue pairs";
const NVME: &str = "NVMe multipath";

pub(crate) fn validator(schema: &str) -> Validator {
    jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
}

/// What a schema refuses of a document.
pub(crate) fn refused(schema: &Validator, document: &Value) -> Vec<String> {
    let errors = schema.iter_errors(document);
    let error = |e: ValidationError<'_>| format!("{}: {e}", e.instance_path());
    errors.map(error).collect()
}

/// Documents that are newer than the schemas by hand.
const SINCE: [&str; 9] = [
    "fabric",
    "fabric-ping",
    "fabric-route",
    "import",
    "lat-each",
    "lat-sweep",
    "layers",
    "list",
    "whatif-compare",
];

/// A document fits its schema, and the one that was written by hand for the same document, if there is one.
#[track_caller]
pub(crate) fn fits(schema: &str, document: &Value) {
    all_fit(schema, [document]);
}

/// As [`fits`], for many documents: schemas take longer to read than most documents to check.
#[track_caller]
pub(crate) fn all_fit<'a>(schema: &str, documents: impl IntoIterator<Item = &'a Value>) {
    let name = name(schema);
    let published = validator(schema);
    let by_hand = (!SINCE.contains(&&*name)).then(|| validator(by_hand(&name)));
    for document in documents {
        let errors = refused(&published, document);
        assert_eq!(errors, [""; 0], "{name}: {document}");
        if let Some(by_hand) = &by_hand {
            let errors = refused(by_hand, &without_added(&name, document));
            assert_eq!(errors, [""; 0], "{name}, by hand: {document}");
        }
    }
}

/// `run` of a schema whose id is `https://.../run.schema.json`.
fn name(schema: &str) -> String {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let id = schema["$id"].as_str().unwrap();
    let file = id.rsplit('/').next().unwrap();
    file.strip_suffix(".schema.json").unwrap().to_owned()
}

/// The schema that was written by hand for the documents of this name.
pub(crate) fn by_hand(name: &str) -> &'static str {
    let found = BY_HAND.iter().find(|(known, _)| *known == name);
    found.unwrap().1
}

/// Figures that were added since to what `diff` compares.
const ADDED_FIGURES: [&str; 3] = ["operations_per_sec", "messages_per_sec", "lost_share"];

/// Engines added since. Documents have the same fields for them as for others.
const ADDED_ENGINES: [&str; 4] = ["shm", "memory", "rdma", "program"];

/// Factors of a sweep added since.
const ADDED_FACTORS: [&str; 2] = ["depth", "qps"];

/// Keys of an advice that were added since: its parts, wherever it stands.
const ADDED_TO_ADVICE: [&str; 5] = ["what", "steps", "undo_steps", "lost_at_boot", "joined"];

/// A document without the keys and figures that were added since.
pub(crate) fn without_added(name: &str, document: &Value) -> Value {
    let mut before = document.clone();
    for (_, place, _) in ADDED.iter().filter(|(of, ..)| *of == name) {
        let parts: Vec<&str> = place.split('/').skip(1).collect();
        remove(&mut before, &parts);
    }
    shorten_advice(&mut before);
    if let Some(figures) = before.get_mut("figures").and_then(Value::as_array_mut) {
        figures.retain(|figure| !ADDED_FIGURES.iter().any(|added| figure["figure"] == *added));
    }
    // A line of a stream that is newer, with a document of its own.
    if before.get("event").is_some_and(|event| *event == "lat-sweep") {
        before["event"] = "lat".into();
    }
    if let Some(engine) = before.get_mut("engine")
        && ADDED_ENGINES.iter().any(|added| *engine == *added)
    {
        *engine = "tcp".into();
    }
    if let Some(swept) = before.get_mut("swept")
        && ADDED_FACTORS.iter().any(|added| *swept == *added)
    {
        *swept = "streams".into();
    }
    if before.get("far_end").is_some_and(|end| *end == "none") {
        before["far_end"] = "linerate".into();
    }
    before
}

fn shorten_advice(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.contains_key("undo_steps") {
                object.retain(|key, _| !ADDED_TO_ADVICE.contains(&key.as_str()));
            }
            object.values_mut().for_each(shorten_advice);
        }
        Value::Array(all) => all.iter_mut().for_each(shorten_advice),
        _ => {}
    }
}

fn remove(value: &mut Value, place: &[&str]) {
    match (value, place) {
        (Value::Object(object), [key]) => {
            object.remove(*key);
        }
        (Value::Object(object), [key, rest @ ..]) => {
            object.get_mut(*key).into_iter().for_each(|v| remove(v, rest));
        }
        (Value::Array(all), ["*", rest @ ..]) => all.iter_mut().for_each(|v| remove(v, rest)),
        _ => {}
    }
}
