//! The files of rows: one JSON object a line, appended as runs end, so that a series can be broken off and resumed.

use super::run::Row;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

/// Rows of one sender, in memory and on disk.
pub struct Rows {
    path: PathBuf,
    rows: Vec<Row>,
    file: File,
}

impl Rows {
    /// The rows of `path`; none where it does not exist yet.
    pub fn open(path: PathBuf) -> Result<Rows, String> {
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            other => other.map_err(|e| format!("{}: {e}", path.display()))?,
        };
        let parse = |(number, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|e| format!("{}:{}: {e}", path.display(), number + 1))
        };
        let rows = text.lines().enumerate().map(parse).collect::<Result<Vec<Row>, _>>()?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Rows { path, rows, file })
    }
    /// Those of a cell and a sender.
    pub fn of<'a>(&'a self, cell: &'a str, subject: &'a str) -> impl Iterator<Item = &'a Row> + Clone {
        self.rows.iter().filter(move |row| row.cell == cell && row.subject == subject)
    }
    /// The row of one run.
    pub fn find(&self, cell: &str, subject: &str, pair: u32) -> Option<&Row> {
        let is_it = |row: &&Row| row.pair == pair && row.cell == cell && row.subject == subject;
        self.rows.iter().find(is_it)
    }
    /// Adds a row, and writes it at once.
    pub fn add(&mut self, row: Row) -> Result<(), String> {
        let line = serde_json::to_string(&row).map_err(|e| e.to_string())?;
        writeln!(self.file, "{line}").map_err(|e| format!("{}: {e}", self.path.display()))?;
        self.rows.push(row);
        Ok(())
    }
    /// Forgets the rows that `which` picks, and writes the others anew.
    pub fn forget(&mut self, which: impl Fn(&Row) -> bool) -> Result<(), String> {
        self.rows.retain(|row| !which(row));
        let rows = std::mem::take(&mut self.rows);
        std::fs::write(&self.path, "").map_err(|e| format!("{}: {e}", self.path.display()))?;
        rows.into_iter().try_for_each(|row| self.add(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_found_again() {
        let path = std::env::temp_dir().join(format!("inhost-rows-{}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let row = |pair| Row {
            cell: "10M-2ms-0".into(),
            pair,
            subject: "inhost-cubic".into(),
            bytes: 1_000,
            seconds: 0.5,
            complete: true,
            gaps: Default::default(),
            lost: 0,
            overflowed: 0,
            late_p99_us: 1.5,
            date: "2026-11-21".into(),
            version: "0".into(),
        };
        let mut rows = Rows::open(path.clone()).unwrap();
        (0..3).for_each(|pair| rows.add(row(pair)).unwrap());
        rows.forget(|row| row.pair == 1).unwrap();
        rows.add(row(7)).unwrap();
        let again = Rows::open(path.clone()).unwrap();
        let pairs: Vec<u32> = again.of("10M-2ms-0", "inhost-cubic").map(|row| row.pair).collect();
        assert_eq!(pairs, [0, 2, 7]);
        assert_eq!(again.find("10M-2ms-0", "inhost-cubic", 7).unwrap().bits_per_second(), 16_000.0);
        std::fs::remove_file(path).unwrap();
    }
}
