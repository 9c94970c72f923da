//! `inhost user`: who may log in.

use crate::args::User;
use crate::failure::Failure;
use inhost_common::users::{UserError, Users};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Adds, changes, removes or lists users.
pub fn run(command: &User) -> Result<(), Failure> {
    match command {
        User::Add { name, users, shell, operator } => {
            add(name, &file(users.as_deref())?, shell.as_deref(), *operator)
        }
        User::Operator { name, no, users } => {
            let path = file(users.as_deref())?;
            change(&path, Users::read, |table| table.set_operator(name, !no))?;
            let is = if *no { "is not an operator" } else { "is an operator" };
            say!("{name} {is} in {}", path.display());
            Ok(())
        }
        User::Remove { name, users } => {
            let path = file(users.as_deref())?;
            change(&path, Users::read, |table| table.remove(name))?;
            say!("removed {name} from {}", path.display());
            Ok(())
        }
        User::List { users, json } => list(&file(users.as_deref())?, *json),
    }
}

/// The users file: the one named, or the user's own.
pub fn file(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let base = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")));
    match base {
        Some(base) => Ok(base.join("inhost").join("users")),
        None => Err(Failure::usage("no home folder is known; name the users file with --users FILE")),
    }
}

fn add(name: &str, path: &Path, shell: Option<&str>, is_operator: bool) -> Result<(), Failure> {
    Users::read_or_empty(path).map_err(failed)?;
    let password = password(name)?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::operation(format!("cannot make the folder {}: {e}", folder.display())))?;
    }
    let existed = change(path, Users::read_or_empty, |table| {
        // A known name gets a new password.
        let was_operator = table.accounts().any(|account| account.name == name && account.is_operator);
        let existed = table.remove(name).is_ok();
        table.add(name, &password, shell)?;
        table.set_operator(name, is_operator || was_operator)?;
        Ok(existed)
    })?;
    say!("{} {name} in {}", if existed { "changed the password of" } else { "added" }, path.display());
    Ok(())
}

/// Changes the file, as nobody else does meanwhile. Where `how` fails it is as it was.
fn change<R>(
    path: &Path,
    read: impl FnOnce(&Path) -> Result<Users, UserError>,
    how: impl FnOnce(&mut Users) -> Result<R, UserError>,
) -> Result<R, Failure> {
    let _locked = Users::lock(path).map_err(failed)?;
    let mut table = read(path).map_err(failed)?;
    let done = how(&mut table).map_err(failed)?;
    table.write(path).map_err(failed)?;
    Ok(done)
}

/// Asks twice on a terminal; otherwise one line of standard input is the password.
fn password(name: &str) -> Result<String, Failure> {
    if !io::stdin().is_terminal() {
        let mut line = String::new();
        io::stdin()
            .lock()
            .read_line(&mut line)
            .map_err(|e| Failure::operation(format!("cannot read the password from standard input: {e}")))?;
        return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
    }
    let ask = |prompt: &str| {
        crate::password::ask(prompt)
            .map_err(|e| Failure::operation(format!("cannot read the password from the terminal: {e}")))
    };
    let first = ask(&format!("Password for {name}: "))?;
    if ask("Once more: ")? != first {
        return Err(Failure::operation("the two passwords differ; nothing was changed"));
    }
    Ok(first)
}

fn list(path: &Path, json: bool) -> Result<(), Failure> {
    let table = Users::read_or_empty(path).map_err(failed)?;
    let mut out = io::stdout().lock();
    let written = if json {
        let names: Vec<_> = table
            .accounts()
            .map(|account| {
                serde_json::json!({
                    "name": account.name, "shell": account.shell, "operator": account.is_operator
                })
            })
            .collect();
        writeln!(out, "{}", serde_json::Value::from(names))
    } else {
        table.accounts().try_for_each(|account| {
            let mark = if account.is_operator { "operator" } else { "" };
            let shell = account.shell.as_deref().unwrap_or(Path::new("")).to_string_lossy();
            writeln!(out, "{}", format!("{:32}  {shell:20}  {mark}", account.name).trim_end())
        })
    };
    // A reader that went away, as `| head` does, is not a failure.
    written
        .or_else(|e| if e.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(e) })
        .map_err(|e| Failure::operation(format!("cannot write to standard output: {e}")))
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::operation(error.to_string())
}
