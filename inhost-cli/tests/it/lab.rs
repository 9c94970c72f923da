//! `inhost lab` as a user has it.

use crate::common::{Folder, inhost};
use inhost_interop::slurm::Cluster;
use inhost_interop::{output, output_within, run};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

#[test]
fn an_experiment_is_listed_run_compared_exported_and_reported() {
    let folder = Folder::new("lab");
    let lab = |words: &[&str]| run(inhost(&folder.0).arg("lab").args(words));
    assert!(lab(&["list"]).contains("mit-6-4                papers       0 of 4"));
    let shown = lab(&["run", "mit-6-4", "--quiet"]);
    assert_eq!(shown, "");
    assert!(lab(&["list"]).contains("mit-6-4                papers       4 of 4"));
    assert!(lab(&["compare", "mit-6-4"]).contains("holds        echo_ms"));
    let all: Value = serde_json::from_str(&lab(&["compare", "--json"])).unwrap();
    assert_eq!(all["figures"].as_array().unwrap().len(), 7, "{all}");
    let table = lab(&["export", "mit-6-4"]);
    assert!(table.starts_with("point,seed,link.bits_per_second,echo_ms\n0,1,4800,22"), "{table}");
    assert_eq!(lab(&["report"]), "lab-report/report.html\nlab-report/report.md\n");
    assert!(folder.0.join("lab-report/mit-6-4-1.svg").exists());
}

#[test]
fn an_experiment_of_ones_own_begins_with_another_one() {
    let folder = Folder::new("lab-own");
    let mine = folder.0.join("mine.toml");
    let text = run(inhost(&folder.0).args(["lab", "show", "mit-6-4"]));
    let text = text.replace("\"mit.table_6_4.line_bps\"", "[300, 600]").replace("set = \"papers\"", "");
    let own = text.split("[[compare]]").next().unwrap();
    std::fs::write(&mine, own).unwrap();
    let shown = run(inhost(&folder.0).args(["lab", "run", "mine.toml"]));
    assert!(shown.contains("bits per second 300: echo_ms"), "{shown}");
    // It is known by its name, here and where its results are gathered.
    let export = run(inhost(&folder.0).args(["lab", "export", "mine"]));
    assert_eq!(export.lines().count(), 3, "{export}");
    assert!(run(inhost(&folder.0).args(["lab", "compare"])).contains("mine: "));
    let gather = ["lab", "gather", "lab.sqlite", "--results", "all.sqlite"];
    assert_eq!(run(inhost(&folder.0).args(gather)), "lab.sqlite: 2 runs\n");
    assert_eq!(run(inhost(&folder.0).args(["lab", "export", "mine", "--results", "all.sqlite"])), export);
    // One point cannot be: the others are measured, and it says which and why.
    std::fs::write(&mine, own.replace("[300, 600]", "[300, 7, 600]")).unwrap();
    let done = output(inhost(&folder.0).args(["lab", "run", "mine.toml", "--again"]));
    let why = String::from_utf8_lossy(&done.stderr);
    assert!(
        !done.status.success() && why.contains("bits per second 7") && why.contains("1 runs failed"),
        "{why}"
    );
    let unknown = output(inhost(&folder.0).args(["lab", "run", "mit-7"]));
    assert!(
        String::from_utf8_lossy(&unknown.stderr).contains("inhost lab list has their names"),
        "{unknown:?}"
    );
}

#[test]
fn a_file_with_the_name_of_what_is_built_in_is_refused() {
    let folder = Folder::new("lab-name");
    let text = run(inhost(&folder.0).args(["lab", "show", "mit-6-4"]));
    for (name, text) in [("mit-6-4", text.replace("count = 100", "count = 3")), ("papers", text.clone())] {
        let file = format!("{name}.toml");
        std::fs::write(folder.0.join(&file), text).unwrap();
        let refused = output(inhost(&folder.0).args(["lab", "run", &file]));
        let why = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && why.contains("give the file another name"), "{why}");
    }
    // A copy of it is the same experiment.
    std::fs::write(folder.0.join("mit-6-4.toml"), &text).unwrap();
    run(inhost(&folder.0).args(["lab", "run", "mit-6-4.toml", "--quiet"]));
    assert!(run(inhost(&folder.0).args(["lab", "list"])).contains("papers       4 of 4"));
}

#[test]
fn without_anything_measured_nothing_succeeds_and_nothing_is_left() {
    let folder = Folder::new("lab-nothing");
    let fails = |words: &[&str], says: &str| {
        let done = output(inhost(&folder.0).arg("lab").args(words));
        let why = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(1) && done.stdout.is_empty() && why.contains(says), "{done:?}");
    };
    fails(&["gather", "nosuch"], "there are no results");
    let mut slurm = inhost(&folder.0);
    slurm.env("PATH", &folder.0).args(["lab", "run", "mit-6-4", "--on", "slurm"]);
    assert!(String::from_utf8_lossy(&output(&mut slurm).stderr).contains("sbatch is not installed here"));
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
    // One that takes no jobs.
    let sbatch = folder.0.join("sbatch");
    let refuses = "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho no such partition >&2\nexit 1\n";
    std::fs::write(&sbatch, refuses).unwrap();
    std::fs::set_permissions(&sbatch, std::fs::Permissions::from_mode(0o755)).unwrap();
    let why = String::from_utf8(output(&mut slurm).stderr).unwrap();
    assert!(why.contains("no such partition") && why.contains("sbatch did not take the jobs"), "{why}");
    let left = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.map(|name| name.into_string().unwrap()).any(|name| name.contains("-of-")));
    std::fs::remove_file(&sbatch).unwrap();
    run(inhost(&folder.0).args(["lab", "run", "mit-lines", "--quiet"]));
    for command in ["compare", "export", "report"] {
        fails(&[command, "mit-6-4"], "nothing of mit-6-4 was measured; inhost lab run");
    }
    assert!(!folder.0.join("lab-report").exists());
}

#[test]
#[ignore = "long run: make test-slurm"]
fn the_same_sweep_runs_at_slurm() {
    let folder = Folder::new("lab-slurm");
    let cluster = Cluster::start(&folder.0);
    let mut lab = inhost(&folder.0);
    lab.env("SLURM_CONF", cluster.config());
    let sweep = ["lab", "run", "mit-figure-6-3", "--results", "there.sqlite", "--on", "slurm", "--jobs", "4"];
    let done = output_within(Duration::from_secs(120), lab.args(sweep));
    assert!(done.status.success(), "{done:?}");
    run(inhost(&folder.0).args(["lab", "run", "mit-figure-6-3", "--quiet", "--results", "here.sqlite"]));
    let table =
        |file: &str| run(inhost(&folder.0).args(["lab", "export", "mit-figure-6-3", "--results", file]));
    assert_eq!(table("there.sqlite"), table("here.sqlite"));
    assert_eq!(table("here.sqlite").lines().count(), 91);
}
