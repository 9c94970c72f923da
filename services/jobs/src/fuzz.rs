//! Fuzz targets. The input is what a client sends, or what a file of a job has; the invariants are asserted.

use crate::codec::{ELEMENTS, Submission};
use crate::server::{credentials, range};

/// One input, to everything that reads from the network or from a file.
pub fn fuzz_jobs(input: &[u8]) {
    if let Ok(submission) = Submission::from_json(input) {
        assert!(submission.indices().len() <= ELEMENTS as usize);
        let again = serde_json::to_vec(&submission).map(|text| Submission::from_json(&text));
        assert_eq!(again.ok(), Some(Ok(submission)), "what is kept is read again");
    }
    let text = String::from_utf8_lossy(input);
    if let Some((user, password)) = credentials(&text) {
        assert!(!user.contains(':') && user.len() + password.len() <= input.len());
    }
    let _ = range(&text);
    if let Ok(Some(response)) = crate::client::parse(input) {
        assert!(response.body.len() <= input.len());
    }
    let _ = crate::runner::stat(&text);
    let rows = crate::slurm::squeue(&text);
    assert!(rows.len() <= text.lines().count());
    let _ = crate::slurm::sacct(&text, "12_3");
    assert!(crate::slurm::sbatch(&text).is_none_or(|id| id.bytes().all(|octet| octet.is_ascii_digit())));
}
