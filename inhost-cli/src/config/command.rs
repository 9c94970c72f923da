//! `inhost config`: is a file right, and what may stand in one.

use super::{Config, FILE_NAME, File, check, schema};
use crate::args::{Check, ConfigCommand, Serve};
use crate::failure::Failure;
use crate::output::print;
use crate::registry::SERVICES;
use serde_json::json;
use std::path::Path;

/// Checks a file, or prints the schema.
pub fn run(command: &ConfigCommand) -> Result<(), Failure> {
    match command {
        ConfigCommand::Check(arguments) => run_check(arguments),
        ConfigCommand::Schema => print(&format!("{:#}\n", schema::schema())),
    }
}

fn run_check(arguments: &Check) -> Result<(), Failure> {
    let file = match &arguments.file {
        Some(path) => File::named(path)?,
        None => File::of_current_folder(Path::new(FILE_NAME))?.ok_or_else(|| {
            Failure::usage(format!(
                "there is no {FILE_NAME} in the current folder; name a file: inhost config check FILE"
            ))
        })?,
    };
    let checked = right(&file);
    if arguments.json {
        let report = match &checked {
            Ok((config, services)) => {
                let (links, note) = (&config.link, check::note(config));
                json!({ "file": file.path, "ok": true, "links": links, "services": services, "note": note, "error": null })
            }
            Err(failure) => json!({ "file": file.path, "ok": false, "error": failure.to_string() }),
        };
        print(&format!("{report}\n"))?;
    }
    let (config, services) = checked?;
    if !arguments.json {
        let links = config.link.iter().map(|link| link.split(',').next().unwrap_or(link));
        let links = links.collect::<Vec<_>>().join(", ");
        let services = if services.is_empty() { "none".to_owned() } else { services.join(", ") };
        print(&format!("{} is right\n  links     {links}\n  services  {services}\n", file.path.display()))?;
        check::note(&config).iter().try_for_each(|note| print(&format!("  note      {note}\n")))?;
    }
    Ok(())
}

/// The services that are switched on, once all that the configuration names was opened.
fn opened(config: &Config) -> Result<Vec<&'static str>, Failure> {
    let files = config.files();
    check::files(config)?;
    let mut services = Vec::new();
    for kind in SERVICES {
        if kind.try_files(config.section(kind), &files)? {
            services.push(kind.name);
        }
    }
    Ok(services)
}

/// The configuration of a file, and the services that it switches on. What these name has been opened.
fn right(file: &File) -> Result<(Config, Vec<&'static str>), Failure> {
    let config = Config::of(Some(file), &Serve::default())?;
    let services = opened(&config).map_err(|failure| failure.at(&file.path, &file.text))?;
    Ok((config, services))
}
