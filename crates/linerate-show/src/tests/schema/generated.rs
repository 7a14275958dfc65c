//! Makes the schema of a document from its type.

use linerate_units::EXACT;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use linerate_test::kept;

/// The schema of type `T`, which is published as `name`.
fn schema<T: JsonSchema>(name: &str) -> String {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    RecursiveTransform(tidy).transform(&mut schema);
    let id = format!("https://github.com/linerate/linerate/schema/{name}.schema.json");
    schema.insert("$id".to_owned(), id.into());
    let mut schema = schema.to_value();
    rename(&mut schema);
    format!("{schema:#}\n")
}

/// Applies the rules for every part of a schema: objects are closed, integers are exact in every JSON reader,
/// and each description is one paragraph.
fn tidy(schema: &mut Schema) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    // Removes names of Rust's number types, and default values of fields.
    schema.remove("format");
    schema.remove("default");
    let is_integer = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == "integer"),
        one => one.is_some_and(|one| one == "integer"),
    };
    if is_integer {
        schema.entry("maximum").or_insert(EXACT.into());
    }
    if schema.contains_key("properties") {
        schema.entry("additionalProperties").or_insert(false.into());
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}

/// Renames definitions to the style of the keys: `limit` for the type `LimitOut`.
fn rename(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::String(to)) = object.get_mut("$ref") {
                let (place, name) = to.rsplit_once('/').unwrap();
                *to = format!("{place}/{}", key(name));
            }
            if let Some(Value::Object(all)) = object.get_mut("$defs") {
                let number = all.len();
                let renamed = std::mem::take(all).into_iter();
                *all = renamed.map(|(name, value)| (key(&name), value)).collect();
                assert_eq!(all.len(), number, "two types of one name: {all:#?}");
            }
            object.values_mut().for_each(rename);
        }
        Value::Array(array) => array.iter_mut().for_each(rename),
        _ => {}
    }
}

fn key(name: &str) -> String {
    // schemars adds a number to the name if a second type has the same name.
    assert!(!name.ends_with(|c: char| c.is_ascii_digit()), "two types are called {name}");
    let mut key = String::new();
    for c in name.strip_suffix("Out").unwrap_or(name).chars() {
        if c.is_ascii_uppercase() && !key.is_empty() {
            key.push('_');
        }
        key.push(c.to_ascii_lowercase());
    }
    key
}

/// Compares the schema file of a document with the schema made from its type.
pub(crate) fn check<T: JsonSchema>(name: &str) {
    kept::check(&format!("crates/linerate-show/schema/{name}.schema.json"), &schema::<T>(name));
}
