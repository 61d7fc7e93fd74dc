//! JSON as messages, by the JSON mapping of Protocol Buffers
//! (<https://protobuf.dev/programming-guides/json/>).

use config::nearest::suggestion;
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, Kind, MessageDescriptor};
use serde_json::Value;

use crate::{Method, SchemaError};

impl Method {
    /// The message that this JSON document is, encoded.
    ///
    /// # Errors
    /// When it is not JSON, or not such a message: where, and what was expected.
    pub fn message(&self, json: &str) -> Result<Vec<u8>, SchemaError> {
        let input = self.input();
        let wrong = |error: serde_json::Error| {
            SchemaError::Json(format!("not a message {}: {error}", input.full_name()))
        };
        let value: Value = serde_json::from_str(json).map_err(wrong)?;
        // Before what would name an unknown field, but none that there are.
        check_fields(&input, &value, "")?;
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let message = DynamicMessage::deserialize(input.clone(), &mut deserializer);
        Ok(message.map_err(wrong)?.encode_to_vec())
    }
}

/// Looks for fields that messages do not have.
fn check_fields(
    message: &MessageDescriptor,
    value: &Value,
    place: &str,
) -> Result<(), SchemaError> {
    // Those have forms of their own.
    if message.package_name() == "google.protobuf" {
        return Ok(());
    }
    let Value::Object(members) = value else {
        return Ok(());
    };
    for (name, value) in members {
        let place = match place {
            "" => name.clone(),
            _ => format!("{place}.{name}"),
        };
        let by_json_name = message.get_field_by_json_name(name);
        let field = by_json_name.or_else(|| message.get_field_by_name(name));
        let Some(field) = field else {
            // An extension.
            if name.starts_with('[') {
                continue;
            }
            let all: Vec<_> = message.fields().collect();
            return Err(SchemaError::Field {
                place,
                message: message.full_name().to_owned(),
                help: suggestion(name, "fields", all.iter().map(|one| one.name())),
            });
        };
        let Kind::Message(inner) = field.kind() else {
            continue;
        };
        match value {
            Value::Array(values) if field.is_list() => {
                for (at, value) in values.iter().enumerate() {
                    check_fields(&inner, value, &format!("{place}[{at}]"))?;
                }
            }
            Value::Object(values) if field.is_map() => {
                let value_field = inner.map_entry_value_field();
                if let Kind::Message(inner) = value_field.kind() {
                    for (key, value) in values {
                        check_fields(&inner, value, &format!("{place}.{key}"))?;
                    }
                }
            }
            _ => check_fields(&inner, value, &place)?,
        }
    }
    Ok(())
}
