//! The page's table: how the kernel differs, and why.

use crate::language::{KernelNote, Profile, Script};
use crate::suite::{self, Verdict};
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- table: written by `inhost-script table` -->";
const END: &str = "<!-- end of table -->";

/// The scripts and what came of them on both sides.
pub struct Results<'a> {
    /// The scripts.
    pub scripts: &'a [Script],
    /// On our stack.
    pub ours: &'a [Verdict],
    /// On the kernel.
    pub kernel: &'a [Verdict],
}

impl Results<'_> {
    /// The table as Markdown.
    pub fn markdown(&self, release: &str) -> String {
        let passed = |verdicts: &[Verdict]| verdicts.iter().filter(|verdict| verdict.passed()).count();
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{} scripts; {} hold on our stack, {} on Linux {release}, {} differ there, {} cannot be asked of it.\n",
            self.scripts.len(),
            passed(self.ours),
            passed(self.kernel),
            self.kernel.iter().filter(|verdict| matches!(verdict, Verdict::Failed(_))).count(),
            self.kernel.iter().filter(|verdict| matches!(verdict, Verdict::NotRun(_))).count(),
        );
        text.push_str("| script | what it asks | what the kernel does | why | our `linux` profile |\n");
        text.push_str("|---|---|---|---|---|\n");
        for (script, verdict) in self.scripts.iter().zip(self.kernel) {
            let why = match &script.kernel {
                KernelNote::Same => continue,
                KernelNote::Differs(why) | KernelNote::CannotRun(why) => why,
            };
            let does = match verdict {
                Verdict::Failed(failed) => {
                    let line = failed.place.rsplit(':').next().unwrap_or_default();
                    format!("line {line}: {}", failed.reason)
                }
                Verdict::NotRun(_) => "not asked".to_owned(),
                Verdict::Passed => "the same".to_owned(),
            };
            let like = like(script, verdict).to_owned();
            let row = [name(script), script.purpose.clone(), does, why.clone(), like];
            let row = row.map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        text
    }
}

/// Reference of our `linux` profile where the kernel differs.
fn like(script: &Script, kernel: &Verdict) -> &'static str {
    let Verdict::Failed(kernel) = kernel else { return "" };
    match suite::on_ours(&Script { profile: Profile::Linux, ..script.clone() }) {
        Verdict::Failed(ours) if ours.place == kernel.place => "as the kernel",
        Verdict::Failed(_) => "its own way",
        Verdict::Passed | Verdict::NotRun(_) => "as the RFC",
    }
}

/// Folder and file of a script, without what all have in common.
fn name(script: &Script) -> String {
    let path = Path::new(&script.file);
    let file = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    format!("{folder}/{file}")
}

/// Plays the scripts on both sides and puts the table between its marks in `page`. An error names the first
/// contradiction between a script and the kernel, or a failure of ours.
pub fn write(scripts: &[Script], page: &Path) -> Result<String, String> {
    let ours: Vec<_> = scripts.iter().map(suite::on_ours).collect();
    let kernel = suite::all_on_kernel(scripts);
    for (script, verdicts) in scripts.iter().zip(ours.iter().zip(&kernel)) {
        if let (Verdict::Failed(failed), _) = verdicts {
            return Err(format!("our stack: {}", suite::report(failed)));
        }
        if let Some(wrong) = suite::contradiction(&script.kernel, verdicts.1) {
            return Err(format!("{}: {wrong}", script.file));
        }
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // The first two numbers; the rest is the machine's own.
    let release = release.split('.').take(2).collect::<Vec<_>>().join(".");
    let table = Results { scripts, ours: &ours, kernel: &kernel }.markdown(&release);
    let text = std::fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))?;
    let (Some(begin), Some(end)) = (text.find(BEGIN), text.find(END)) else {
        return Err(format!("{} has no place for the table, between {BEGIN} and {END}", page.display()));
    };
    let text = format!("{}{BEGIN}\n\n{table}\n{}", &text[..begin], &text[end..]);
    std::fs::write(page, text).map_err(|error| format!("{}: {error}", page.display()))?;
    Ok(table.lines().next().unwrap_or_default().to_owned())
}
