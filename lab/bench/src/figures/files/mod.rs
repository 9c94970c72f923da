//! Files by inhost's servers and clients, beside those of others, in the same run.

mod carry;
mod case;
mod ftp;
mod mirror;
mod programs;
mod small;
mod tftp;
mod vsftpd;

use super::machine;
use super::page;
use case::{Group, measure};

/// The sizes that the page shows.
const MEGABYTES: u64 = 1000;
const TFTP_MEGABYTES: u64 = 100;
const FILES: usize = 10_000;
const SMALL_FILES: usize = 500;
const REPEATS: usize = 3;

/// Arguments of `inhost-bench figures files`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Only these, between commas
    #[arg(long, value_name = "WHICH", value_delimiter = ',', value_parser = ["ftp", "mirror", "small", "tftp"])]
    only: Vec<String>,
    /// Megabytes by FTP
    #[arg(long, value_name = "COUNT", default_value_t = MEGABYTES)]
    megabytes: u64,
    /// Megabytes by TFTP
    #[arg(long, value_name = "COUNT", default_value_t = TFTP_MEGABYTES)]
    tftp_megabytes: u64,
    /// Files that are mirrored
    #[arg(long, value_name = "COUNT", default_value_t = FILES)]
    files: usize,
    /// Runs of each
    #[arg(long, value_name = "COUNT", default_value_t = REPEATS)]
    repeats: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `inhost-bench figures files …`
pub fn command(options: &Options) -> Result<(), String> {
    let Options { ref only, megabytes, tftp_megabytes, files, repeats, json } = *options;
    eprintln!("{}, {}", machine::describe(), machine::today());
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|word| word == name);
    let mut groups = Vec::new();
    if is_wanted("ftp") {
        let rows = measure(ftp::cases(megabytes * 1_000_000)?, repeats)?;
        let title = format!("FTP of {megabytes} MB, the client is curl on the kernel");
        groups.push(Group { title, amount: megabytes as f64, unit: "MB", rows });
    }
    if is_wanted("mirror") {
        let rows = measure(mirror::cases(files)?, repeats)?;
        let title = format!("{files} files of {} octets, mirrored from vsftpd", mirror::FILE_BYTES);
        groups.push(Group { title, amount: files as f64, unit: "files", rows });
    }
    if is_wanted("small") {
        let rows = measure(small::cases(SMALL_FILES)?, repeats)?;
        let title = format!("{SMALL_FILES} files of {} octets, each way", small::FILE_BYTES);
        groups.push(Group { title, amount: SMALL_FILES as f64, unit: "files", rows });
    }
    if is_wanted("tftp") {
        let rows = measure(tftp::cases(tftp_megabytes * 1_000_000)?, repeats)?;
        let title = format!("TFTP of {tftp_megabytes} MB, blocks of 1428 octets");
        groups.push(Group { title, amount: tftp_megabytes as f64, unit: "MB", rows });
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&groups).map_err(|e| e.to_string())?);
        return Ok(());
    }
    let table = groups.iter().map(Group::to_table).collect::<Vec<_>>().join("\n");
    print!("{table}");
    let is_whole = (megabytes, tftp_megabytes, files, repeats) == (MEGABYTES, TFTP_MEGABYTES, FILES, REPEATS);
    if is_whole && only.is_empty() { page::put("files", &table) } else { Ok(()) }
}
