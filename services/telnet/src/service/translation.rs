//! `charset`, `tabs` and `table` of an application's section.

use core::num::NonZeroU8;
use std::io::Read as _;
use std::path::Path;

use inhost_common::service::Problem;

use super::ApplicationSection;
use crate::codec::Charset;
use crate::translation::{TABLE_BYTES, TABS, Table, Translation};

/// How text is translated; `None` if the section says nothing of it. `key` gives the whole key of a field.
pub(super) fn translation(
    of: &ApplicationSection,
    key: &dyn Fn(&str) -> String,
) -> Result<Option<Translation>, Problem> {
    let ApplicationSection { charset, tabs, table, menu, .. } = of;
    if charset.is_none() && tabs.is_none() && table.is_none() {
        return Ok(None);
    }
    if !menu.is_empty() {
        let expected = "charset, tabs and table are those of a program or a host, and not of a menu";
        return Err(Problem::setting(&key(".menu"), menu.join(" "), expected));
    }
    let charset = match charset {
        None => Charset::Utf8,
        Some(name) => Charset::from_name(name).ok_or_else(|| {
            let names = Charset::ALL.map(Charset::name).join(", ");
            Problem::setting(&key(".charset"), name, format!("give one of {names}"))
        })?,
    };
    let tabs = match *tabs {
        None => None,
        Some(every) => Some(NonZeroU8::new(every).filter(|every| every.get() <= TABS).ok_or_else(|| {
            Problem::setting(&key(".tabs"), every, format!("give the columns between stops: 1 to {TABS}"))
        })?),
    };
    let table = match table {
        None => Table::default(),
        Some(path) => read(path, charset).map_err(|why| {
            Problem::setting(&key(".table"), path.display(), format!("{}, {why}", path.display()))
        })?,
    };
    Ok(Some(Translation { charset, tabs, table }))
}

fn read(path: &Path, charset: Charset) -> Result<Table, String> {
    let file = std::fs::File::open(path).map_err(|e| e.to_string())?;
    if !file.metadata().is_ok_and(|facts| facts.is_file()) {
        return Err("it is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(TABLE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() > TABLE_BYTES {
        return Err(format!("it is longer than {TABLE_BYTES} octets"));
    }
    let valid = core::str::from_utf8(&bytes);
    let text = valid.map_err(|e| {
        let before = bytes.get(..e.valid_up_to()).unwrap_or_default();
        format!("line {}: it is not UTF-8", 1 + before.iter().filter(|&&octet| octet == b'\n').count())
    })?;
    Table::parse(text, charset).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{Section, Telnet};
    use inhost_common::service::Service as _;

    fn checked(of: ApplicationSection) -> Result<(), String> {
        let mut section = Section::default();
        section.applications.insert("tso".to_owned(), of);
        Telnet::check(&section).map_err(|problem| problem.to_string())
    }
    fn host() -> ApplicationSection {
        ApplicationSection { host: Some("10.9.0.5".to_owned()), ..ApplicationSection::default() }
    }

    #[test]
    fn bad_translations_are_errors_of_the_section() {
        let named = |name: &str| ApplicationSection { charset: Some(name.to_owned()), ..host() };
        assert_eq!(checked(named("ibm037")), Ok(()));
        let error = checked(named("EBCDIC")).unwrap_err();
        assert!(
            error.starts_with("telnet.applications.tso.charset = \"EBCDIC\": give one of UTF-8, "),
            "{error}"
        );
        for tabs in [0, 33] {
            let error = checked(ApplicationSection { tabs: Some(tabs), ..host() }).unwrap_err();
            assert!(error.contains("give the columns between stops: 1 to 32"), "{error}");
        }
        let menu = ApplicationSection { menu: vec!["tso".to_owned()], tabs: Some(8), ..Default::default() };
        assert!(checked(menu).unwrap_err().contains("and not of a menu"));
    }

    #[test]
    fn bad_tables_are_told_with_file_and_line() {
        let path = std::env::temp_dir().join(format!("inhost-table-{}", std::process::id()));
        let with = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            checked(ApplicationSection { table: Some(path.clone()), ..host() })
        };
        assert_eq!(with(b"# mine\n41 = a\n"), Ok(()));
        let name = path.display();
        let error = with(b"# mine\n41 = \n").unwrap_err();
        assert!(
            error.ends_with(&format!("{name}, line 2: expected OCTETS, one of < > =, and TEXT")),
            "{error}"
        );
        let error = with(b"# mine\n\n41 = \xff\n").unwrap_err();
        assert!(error.ends_with("line 3: it is not UTF-8"), "{error}");
        let error = with(&b"#\n".repeat(TABLE_BYTES)).unwrap_err();
        assert!(error.ends_with("it is longer than 65536 octets"), "{error}");
        std::fs::remove_file(&path).unwrap();
        assert!(checked(ApplicationSection { table: Some(path.clone()), ..host() }).is_err());
        let folder = ApplicationSection { table: Some(std::env::temp_dir()), ..host() };
        assert!(checked(folder).unwrap_err().ends_with("it is not a file"));
    }
}
