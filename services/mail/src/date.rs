//! Dates of mail: RFC 5322 §3.3, in UTC.

use mail_parser::DateTime;

/// `Wed, 25 Nov 2026 02:08:36 +0000`.
pub(crate) fn date(unix_s: u64) -> String {
    DateTime::from_timestamp(i64::try_from(unix_s).unwrap_or(i64::MAX)).to_rfc822()
}

#[cfg(test)]
mod tests {
    #[test]
    fn as_date_writes_it() {
        let date = super::date(1_795_572_516);
        let theirs =
            std::process::Command::new("date").args(["-u", "-R", "-d", "@1795572516"]).output().unwrap();
        assert_eq!(date, String::from_utf8(theirs.stdout).unwrap().trim());
    }
}
