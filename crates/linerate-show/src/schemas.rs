//! The list of all JSON documents, each with its published schema.

/// A published schema.
pub struct Schema {
    /// Name of the schema.
    pub name: &'static str,
    /// The commands whose JSON documents this schema describes.
    pub of: &'static str,
    /// The schema as JSON.
    pub text: &'static str,
}

/// The schema that is published as `name`; `None` if there is none.
pub fn schema(name: &str) -> Option<&'static Schema> {
    SCHEMAS.iter().find(|schema| schema.name == name)
}

/// Makes the list of schemas. The schema of each document is made from its type; a test compares the schema file
/// and the type.
macro_rules! schemas {
    ($($name:literal, $document:ty, $of:literal;)*) => {
        /// All published schemas.
        pub const SCHEMAS: &[Schema] = &[$(Schema {
            name: $name,
            of: $of,
            text: include_str!(concat!("../schema/", $name, ".schema.json")),
        }),*];

        #[test]
        fn the_kept_schemas_are_those_of_the_types() {
            $(crate::schema::check::<$document>($name);)*
        }
    };
}

schemas! {
    "run", crate::json::Output<'_>, "linerate run --json, linerate show --json";
    "study", crate::study::Output<'_>,
        "linerate run --repeat N --json, linerate run --layers --json, linerate bw or lat --sweep WHAT --json, \
         linerate lat --op read,write --json, linerate lat --engine tcp,udp --json";
    "stream", crate::stream::Line<'_>, "linerate run, bw or lat --stream-json, each line";
    "list", crate::list::json::Output<'_>, "linerate list --json";
    "diff", crate::diff::json::Output<'_>, "linerate diff --json";
    "bw", crate::bw::Output<'_>, "linerate bw --json";
    "lat", crate::lat::Output<'_>, "linerate lat --json";
    "host", crate::host::json::Output<'_>, "linerate host --json";
    "flows", crate::flows::json::Output<'_>, "linerate flows --json";
    "fabric", crate::fabric::json::Output<'_>, "linerate fabric --json";
    "fabric-ping", crate::fabric::way::PingOutput<'_>, "linerate fabric ping --json";
    "fabric-route", crate::fabric::way::RouteOutput, "linerate fabric route --json";
    "guide", crate::guide::json::Output<'_>, "linerate guide ib --json";
    "import", crate::import::json::Output<'_>, "linerate import --json";
    "whatif", crate::whatif::json::Output<'_>, "linerate whatif --json";
    "whatif-compare", crate::whatif::compare::Output<'_>, "linerate whatif --compare --json";
}
