//! Schemas of tools as models accept them.
//!
//! In: the JSON schema that a server gave for the arguments of a tool. Out: one without references, with an object at
//! the top and a `type` wherever a value is described; or the reason why the tool has to be left out. What is changed
//! makes the schema wider, never narrower than the server's own, but for values that were described by nothing, which
//! become texts.

use serde_json::{Map, Value, json};

/// References into references; a schema that refers to itself ends here.
const MAX_DEPTH: usize = 12;
/// Bytes of a schema: several tools have to fit a prompt.
const MAX_BYTES: usize = 48 << 10;
/// Keywords that models do not need and some refuse.
const DROPPED: [&str; 9] =
    ["$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "unevaluatedProperties", "x-mcp", "examples"];
const COMBINATIONS: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// The schema in plain form.
///
/// # Errors
/// What it is that no model would accept.
pub fn plain(schema: &Map<String, Value>) -> Result<Value, String> {
    let root = Value::Object(schema.clone());
    let mut budget = MAX_BYTES;
    let mut top = match simplify(&root, &root, 0, &mut budget)? {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    unite(&mut top)?;
    match top.get("type") {
        Some(kind) if kind == "object" => {}
        None => {
            top.insert("type".into(), json!("object"));
        }
        Some(other) => return Err(format!("its arguments are of type {other}: expected an object")),
    }
    if !top.get("properties").is_some_and(Value::is_object) {
        top.insert("properties".into(), json!({}));
    }
    Ok(Value::Object(top))
}

/// One schema, its references put in.
fn simplify(schema: &Value, root: &Value, depth: usize, budget: &mut usize) -> Result<Value, String> {
    let Value::Object(object) = schema else {
        // `true` describes anything.
        return Ok(json!({}));
    };
    if depth > MAX_DEPTH {
        return Ok(json!({}));
    }
    let mut out = Map::new();
    if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
        let target = resolve(reference, root)?;
        if let Value::Object(inner) = simplify(target, root, depth + 1, budget)? {
            out = inner;
        }
    }
    for (key, value) in object.iter().filter(|(key, _)| *key != "$ref" && !DROPPED.contains(&key.as_str())) {
        let simple = match (key.as_str(), value) {
            ("properties", Value::Object(all)) => Value::Object(properties(all, root, depth, budget)?),
            ("items" | "additionalProperties" | "not", Value::Object(_)) => {
                typed(simplify(value, root, depth + 1, budget)?)
            }
            ("prefixItems" | "anyOf" | "oneOf" | "allOf", Value::Array(all)) => {
                let all: Result<Vec<_>, _> = all.iter().map(|one| simplify(one, root, depth + 1, budget)).collect();
                Value::Array(all?)
            }
            ("patternProperties" | "dependentSchemas" | "propertyNames" | "if" | "then" | "else" | "contains", _) => {
                continue;
            }
            (_, other) => other.clone(),
        };
        let size = key.len() + if simple.is_object() || simple.is_array() { 8 } else { simple.to_string().len() };
        *budget =
            budget.checked_sub(size).ok_or_else(|| format!("its schema is larger than {} kB", MAX_BYTES >> 10))?;
        out.insert(key.clone(), simple);
    }
    one_type(&mut out);
    Ok(Value::Object(out))
}

fn properties(
    all: &Map<String, Value>,
    root: &Value,
    depth: usize,
    budget: &mut usize,
) -> Result<Map<String, Value>, String> {
    let mut out = Map::new();
    for (name, value) in all.iter().filter(|(_, value)| **value != Value::Bool(false)) {
        out.insert(name.clone(), typed(simplify(value, root, depth + 1, budget)?));
    }
    Ok(out)
}

/// What a reference within the document points at.
fn resolve<'a>(reference: &str, root: &'a Value) -> Result<&'a Value, String> {
    let pointer =
        reference.strip_prefix('#').ok_or_else(|| format!("its schema refers to another document, {reference}"))?;
    root.pointer(pointer).ok_or_else(|| format!("its schema refers to {reference}, which is not there"))
}

/// `["string", "null"]` becomes `string`; of several types the first that is not null, but text where text is one.
fn one_type(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get("type") {
        let known: Vec<&str> = types.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect();
        let kind = if known.contains(&"string") { Some("string") } else { known.first().copied() };
        let kind = kind.unwrap_or("string").to_owned();
        object.insert("type".into(), Value::String(kind));
    }
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(all)) = object.get_mut(key) else { continue };
        all.retain(|one| one["type"] != "null");
        if let [Value::Object(only)] = all.as_slice() {
            let only = only.clone();
            object.shift_remove(key);
            for (inner, value) in only {
                object.entry(inner).or_insert(value);
            }
        }
    }
    if let Some(value) = object.shift_remove("const") {
        object.entry("enum").or_insert_with(|| json!([value]));
    }
    if object.get("default") == Some(&Value::Null) {
        object.shift_remove("default");
    }
}

/// Adds the type that the other keywords imply; a value that is described by nothing is a text.
fn typed(schema: Value) -> Value {
    let Value::Object(mut object) = schema else { return json!({"type": "string"}) };
    let is_combined = COMBINATIONS.iter().any(|key| object.contains_key(*key));
    if object.contains_key("type") || is_combined {
        return Value::Object(object);
    }
    let of_value = |value: &Value| match value {
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::String(_) | Value::Null => "string",
    };
    let kind = if object.contains_key("properties") || object.contains_key("additionalProperties") {
        "object"
    } else if object.contains_key("items") || object.contains_key("prefixItems") {
        "array"
    } else if object.contains_key("minimum") || object.contains_key("maximum") {
        "number"
    } else {
        let example = object.get("enum").and_then(|all| all.get(0)).or_else(|| object.get("default"));
        example.map_or("string", of_value)
    };
    object.insert("type".into(), Value::String(kind.to_owned()));
    Value::Object(object)
}

/// Alternatives at the top become one object: all of their properties, of which those are required that every
/// alternative requires (all that one part of `allOf` does).
fn unite(top: &mut Map<String, Value>) -> Result<(), String> {
    for key in COMBINATIONS {
        let Some(Value::Array(alternatives)) = top.shift_remove(key) else { continue };
        let mut required: Option<Vec<Value>> = None;
        for alternative in &alternatives {
            let kind = &alternative["type"];
            if !(kind.is_null() || kind == "object") {
                return Err(format!("`{key}` at the top of its schema has an alternative of type {kind}"));
            }
            let inner = alternative["properties"].as_object().cloned().unwrap_or_default();
            let all = top.entry("properties").or_insert_with(|| json!({}));
            if let Value::Object(all) = all {
                inner.into_iter().for_each(|(name, value)| {
                    all.entry(name).or_insert(value);
                });
            }
            let its = alternative["required"].as_array().cloned().unwrap_or_default();
            required = Some(match (required, key) {
                (None, _) => its,
                (Some(known), "allOf") => {
                    let new: Vec<_> = its.into_iter().filter(|name| !known.contains(name)).collect();
                    known.into_iter().chain(new).collect()
                }
                (Some(known), _) => known.into_iter().filter(|name| its.contains(name)).collect(),
            });
        }
        let required = required.unwrap_or_default();
        let own = top.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(own) = own {
            let new: Vec<_> = required.into_iter().filter(|name| !own.contains(name)).collect();
            own.extend(new);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(schema: Value) -> Result<Value, String> {
        plain(schema.as_object().unwrap())
    }

    #[test]
    fn references_are_put_in_and_their_homes_dropped() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"incident": {"$ref": "#/$defs/Ref", "description": "which"}},
            "$defs": {"Ref": {"type": "object", "properties": {"id": {"$ref": "#/$defs/Id"}}}, "Id": {"type": "string"}},
        });
        let want = json!({
            "type": "object",
            "properties": {
                "incident": {"type": "object", "properties": {"id": {"type": "string"}}, "description": "which"},
            },
        });
        assert_eq!(made(schema), Ok(want));
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({
            "type": "object",
            "properties": {"filter": {"$ref": "#/definitions/Filter"}},
            "definitions": {"Filter": {"type": "object", "properties": {"and": {"$ref": "#/definitions/Filter"}}}},
        });
        let text = made(schema).unwrap().to_string();
        assert!(!text.contains("$ref") && text.len() < 2000, "{text}");
    }

    #[test]
    fn alternatives_at_the_top_become_one_object() {
        let schema = json!({"anyOf": [
            {"type": "object", "properties": {"id": {"type": "string"}, "a": {}}, "required": ["id", "a"]},
            {"type": "object", "properties": {"id": {"type": "string"}, "b": {"type": "integer"}}, "required": ["id"]},
        ]});
        let want = json!({
            "properties": {"id": {"type": "string"}, "a": {"type": "string"}, "b": {"type": "integer"}},
            "required": ["id"],
            "type": "object",
        });
        assert_eq!(made(schema), Ok(want));
    }

    #[test]
    fn every_value_has_one_type() {
        let schema = json!({"properties": {
            "a": {"type": ["string", "null"]},
            "b": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
            "c": {"enum": [1, 2]},
            "d": {"items": {}},
            "e": true,
            "f": false,
            "g": {"const": "x"},
            "h": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        }});
        let want = json!({
            "properties": {
                "a": {"type": "string"},
                "b": {"type": "integer"},
                "c": {"enum": [1, 2], "type": "integer"},
                "d": {"items": {"type": "string"}, "type": "array"},
                "e": {"type": "string"},
                "g": {"enum": ["x"], "type": "string"},
                "h": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            },
            "type": "object",
        });
        assert_eq!(made(schema), Ok(want));
        assert_eq!(made(json!({})), Ok(json!({"type": "object", "properties": {}})));
    }

    #[test]
    fn what_no_model_would_accept_is_named() {
        for (schema, want) in [
            (json!({"type": "string"}), "its arguments are of type \"string\": expected an object"),
            (
                json!({"properties": {"a": {"$ref": "#/$defs/No"}}}),
                "its schema refers to #/$defs/No, which is not there",
            ),
            (json!({"$ref": "http://h/s.json"}), "its schema refers to another document, http://h/s.json"),
            (json!({"oneOf": [{"type": "array"}]}), "its arguments are of type \"array\": expected an object"),
            (json!({"description": "x".repeat(60_000)}), "its schema is larger than 48 kB"),
        ] {
            assert_eq!(made(schema), Err(want.to_owned()));
        }
    }
}
