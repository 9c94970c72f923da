//! The JSON Schema of `host.toml`, from the structs that read it.

use super::Config;
use crate::registry::SERVICES;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The schema. Editors know draft 7 best.
pub fn schema() -> Value {
    let mut generator =
        SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true).into_generator();
    let sections: Vec<(&str, Value)> =
        SERVICES.iter().map(|kind| (kind.name, (kind.schema)(&mut generator).into())).collect();
    let mut root: Value = generator.into_root_schema_for::<Config>().into();
    root["title"] = "host.toml".into();
    if let Some(properties) = root["properties"].as_object_mut() {
        properties.extend(sections.into_iter().map(|(name, section)| (name.to_owned(), section)));
    }
    tidy(&mut root);
    root
}

/// Fits what was derived to TOML, which has no null, and to readers, who follow no links of Rust.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(object) => {
            without_null(object);
            if let Some(Value::String(text)) = object.get_mut("description") {
                *text = plain(text);
            }
            object.values_mut().for_each(tidy);
        }
        Value::Array(values) => values.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn without_null(object: &mut Map<String, Value>) {
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|one| one != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    // A choice between something and null is that thing.
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(only)] = &choices[..] {
            let only = only.clone();
            object.remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|one| !one.is_null());
    }
}

/// A description in one line, with the words of links alone.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((words, (_, after))) =
            link.split_once("](").and_then(|(w, to)| Some((w, to.split_once(')')?)))
        else {
            break;
        };
        plain += before;
        plain += words;
        rest = after;
    }
    plain += rest;
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file in `docs`, which editors are given. `UPDATE_SCHEMA=1 cargo test -p inhost-cli schema` writes it.
    #[test]
    fn the_file_is_the_schema() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/host.schema.json");
        let text = format!("{:#}\n", schema());
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let file = std::fs::read_to_string(path).unwrap();
        assert!(
            file == text,
            "docs/host.schema.json is old; UPDATE_SCHEMA=1 cargo test -p inhost-cli schema writes it"
        );
    }

    /// Every key has a description, and every default is what the configuration has without the key.
    #[test]
    fn keys_and_defaults_are_those_of_the_configuration() {
        let schema = schema();
        let defaults = serde_json::to_value(Config::default()).unwrap();
        let mut keys = 0;
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{name}");
            let section = SERVICES.iter().find(|kind| kind.name == name);
            let found = match section {
                Some(kind) => serde_json::to_value((kind.section)(None).unwrap()).unwrap(),
                None => defaults[name].clone(),
            };
            let Some(properties) = property["properties"].as_object() else {
                assert_eq!(property.get("default").unwrap_or(&Value::Null), &found, "{name}");
                keys += 1;
                continue;
            };
            assert_eq!(property["additionalProperties"], false, "{name}");
            for (key, property) in properties {
                assert!(property["description"].is_string(), "{name}.{key}");
                let default = property.get("default").unwrap_or(&Value::Null);
                assert_eq!(default, found.get(key).unwrap_or(&Value::Null), "{name}.{key}");
                keys += 1;
            }
            let known = |key: &String| properties.contains_key(key);
            assert!(found.as_object().unwrap().keys().all(known), "{name}: {found}");
        }
        assert!(keys > 70, "{keys} keys");
    }

    /// What the schema lists as choices is taken, and nothing else is.
    #[test]
    fn choices_are_those_that_are_taken() {
        let schema = schema();
        let mut choices = 0;
        for (section, property) in schema["properties"].as_object().unwrap() {
            for (key, property) in property["properties"].as_object().into_iter().flatten() {
                let strings = property["enum"].as_array().into_iter().flatten();
                let consts = property["oneOf"].as_array().into_iter().flatten().map(|one| &one["const"]);
                let words: Vec<&str> = strings.chain(consts).filter_map(Value::as_str).collect();
                if words.is_empty() {
                    continue;
                }
                let taken = |word: &str| {
                    let certificate = match word {
                        "required" => "certificate = \"c\"\nkey = \"k\"\n",
                        _ => "",
                    };
                    let text = format!("[{section}]\n{key} = \"{word}\"\n{certificate}");
                    let config = super::super::Config::parse(&text).map_err(|e| e.to_string())?;
                    super::super::Config::with_flags(config, &crate::args::Serve::default())
                        .map_err(|e| e.to_string())
                };
                for word in &words {
                    taken(word).unwrap_or_else(|why| panic!("{section}.{key} = {word}: {why}"));
                }
                assert!(taken("anything").is_err(), "{section}.{key}");
                choices += 1;
            }
        }
        assert!(choices >= 6, "{choices}");
    }

    #[test]
    fn descriptions_are_plain() {
        assert_eq!(plain("An entry in [`user`](Self::user); [a] b"), "An entry in `user`; [a] b");
    }
}
