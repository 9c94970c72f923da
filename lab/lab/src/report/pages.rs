//! The pages of a report.

use std::fmt::Write as _;

use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

use super::{Chapter, Made, figure, shown};
use crate::compare::{Compared, Shaped, Verdict};
use crate::experiment::Set;

/// Pictures of a chapter: names and SVG.
type Pictures = Vec<(String, String)>;

const STYLE: &str = "
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
h1, h2, h3 { line-height: 1.25; } h3 { margin-top: 2.5rem; } h2 { margin-top: 3rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { border-bottom: 2px solid #888; } .note { color: #555; } .missed { font-weight: bold; color: #a33c00; } .holds { color: #00563f; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; } nav ul { columns: 2; }
";

/// The titles of the sets, in their order.
const SETS: [(Set, &str); 4] = [
    (Set::Papers, "What the four papers measured, on the machines of then"),
    (Set::Today, "The same on this machine"),
    (Set::Classic, "Classic results"),
    (Set::Own, "Own experiments"),
];

/// Of a set, the chapters of which there is something to tell, with their pictures.
fn of_set<'a>(chapters: &'a [Chapter], drawn: &'a [Pictures], set: Set) -> Vec<(&'a Chapter, &'a Pictures)> {
    let all = chapters.iter().zip(drawn);
    all.filter(|(chapter, _)| chapter.experiment.set == set && chapter.is_told()).collect()
}

/// How many figures hold, and how many are missed.
fn count(chapters: &[Chapter], verdict: Verdict) -> usize {
    chapters.iter().map(|chapter| chapter.count(verdict)).sum()
}

fn summary(chapters: &[Chapter]) -> String {
    let without = count(chapters, Verdict::Missing) + count(chapters, Verdict::Unknown);
    format!(
        "Of the judged figures {} hold, {} are missed and {without} were not measured; {} are shown beside the paper's and not \
         judged.",
        count(chapters, Verdict::Holds),
        count(chapters, Verdict::Missed),
        count(chapters, Verdict::Shown)
    )
}

/// The page in HTML, with the pictures in it.
pub fn html(chapters: &[Chapter], drawn: &[Pictures], made: &Made) -> String {
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Experiments of inhost" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Experiments of inhost" }
                p { (made.program) " on " (made.machine) ", " (made.system) ", " (made.day) ". " (summary(chapters)) }
                p.note {
                    "Means are over seeds, with half of their 95 % confidence interval (Student's t) where there is more than one. "
                    "Experiments on the machines of then run in virtual time: the same seed gives the same figure to the bit."
                }
                nav { ul {
                    @for chapter in chapters.iter().filter(|chapter| chapter.is_told()) {
                        li { a href={ "#" (chapter.experiment.name) } { (chapter.experiment.title) } }
                    }
                } }
                @for (set, title) in SETS {
                    @let own = of_set(chapters, drawn, set);
                    @if !own.is_empty() { h2 { (title) } }
                    @for (chapter, pictures) in own { (section(chapter, pictures)) }
                }
            }
        }
    };
    page.into_string()
}

fn section(chapter: &Chapter, pictures: &Pictures) -> Markup {
    let experiment = &chapter.experiment;
    markup! {
        section id=(experiment.name) {
            h3 { (experiment.title) }
            p.note { "Source: " (experiment.source) ". Repeat it: " code { "inhost lab run " (experiment.name) } }
            @for paragraph in experiment.about.split("\n\n").filter(|text| !text.trim().is_empty()) { p { (paragraph) } }
            @for (name, picture) in pictures {
                figure role="img" aria-label=(format!("{}: {name}", experiment.title)) { (PreEscaped(picture)) }
            }
            @if !chapter.compared.is_empty() {
                table {
                    tr { @for head in HEADS { th { (head) } } }
                    @for of in &chapter.compared {
                        tr { @for (number, text) in cells(of).into_iter().enumerate() {
                            td class=[(number == 6).then(|| class(of.verdict))] { (text) }
                        } }
                    }
                }
                @for note in notes(chapter) { p.note { (note) } }
            }
            @for why in chapter.not_here() { p.note { (why) } }
            @if !chapter.shaped.is_empty() {
                ul { @for of in &chapter.shaped {
                    li { (of.text) ": " (values(of)) " " span class=(class(of.verdict)) { (of.verdict.to_string()) } }
                } }
            }
            @for of in &chapter.fitted { @if let Some(why) = of.trouble {
                p.missed { "Not fitted: " (of.text) ": " (why) }
            } @else {
                p { "Fitted by least squares: " (of.text) ". It explains " (format!("{:.2}", of.explained * 100.0)) " % of the variance." }
                ul { @for factor in &of.factors {
                    li { (factor.text()) " " span class=(class(factor.verdict)) { (factor.verdict.to_string()) } }
                } }
            } }
            (table(chapter))
        }
    }
}

const HEADS: [&str; 7] = ["at", "figure", "source", "ours", "error", "allowed", "verdict"];

fn cells(of: &Compared) -> [String; 7] {
    let what = if of.what.is_empty() { of.measure.clone() } else { format!("{}, {}", of.measure, of.what) };
    [
        of.at.clone(),
        what,
        figure(of.paper),
        of.ours.as_ref().map_or_else(|| "-".to_owned(), shown),
        of.error_percent.map_or_else(|| "-".to_owned(), |error| format!("{error:+.1} %")),
        of.tolerance.clone(),
        of.verdict.to_string(),
    ]
}

fn values(of: &Shaped) -> String {
    of.values.iter().map(|&value| figure(value)).collect::<Vec<_>>().join(", ")
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Missed | Verdict::Unknown => "missed",
        Verdict::Holds => "holds",
        _ => "note",
    }
}

/// What is said of figures, each once.
fn notes(chapter: &Chapter) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for of in chapter.compared.iter().filter(|of| !of.note.is_empty()) {
        if !notes.contains(&of.note) {
            notes.push(of.note.clone());
        }
    }
    notes
}

/// Longest table of a page; all points are in the CSV.
const ROWS: usize = 60;

fn table(chapter: &Chapter) -> Markup {
    let measures = chapter.measures();
    let left = chapter.results.len().saturating_sub(ROWS);
    markup! {
        details open[chapter.results.len() <= 12] {
            summary { "All points" }
            table {
                tr { th { "point" } @for name in &measures { th { (name) } } }
                @for of in chapter.results.iter().take(ROWS) {
                    tr {
                        td { (of.point.label) }
                        @for name in &measures { td { (of.measures.get(name).map(shown).unwrap_or_default()) } }
                    }
                }
            }
            @if left > 0 { p.note { (left) " more points are in the CSV: inhost lab export " (chapter.experiment.name) } }
        }
    }
}

/// The page in Markdown, with the pictures beside it.
pub fn markdown(chapters: &[Chapter], drawn: &[Pictures], made: &Made) -> String {
    let mut text = format!(
        "# Experiments of inhost\n\n{} on {}, {}, {}. {}\n",
        made.program,
        made.machine,
        made.system,
        made.day,
        summary(chapters)
    );
    for (set, title) in SETS {
        let own = of_set(chapters, drawn, set);
        if !own.is_empty() {
            let _ = write!(text, "\n## {title}\n");
        }
        for (chapter, pictures) in own {
            let experiment = &chapter.experiment;
            let _ = write!(
                text,
                "\n### {}\n\nSource: {}. Repeat it: `inhost lab run {}`\n",
                experiment.title, experiment.source, experiment.name
            );
            if !experiment.about.is_empty() {
                let _ = write!(text, "\n{}\n", experiment.about.trim());
            }
            for (name, _) in pictures {
                let _ = write!(text, "\n![{}]({name}.svg)\n", experiment.title);
            }
            if !chapter.compared.is_empty() {
                let rows: Vec<Vec<String>> = chapter.compared.iter().map(|of| cells(of).to_vec()).collect();
                table_text(&mut text, &HEADS.map(str::to_owned), &rows);
            }
            for note in notes(chapter) {
                let _ = write!(text, "\n{note}\n");
            }
            for why in chapter.not_here() {
                let _ = write!(text, "\n{why}\n");
            }
            for of in &chapter.shaped {
                let _ = write!(text, "\n- {}: {}: **{}**", of.text, values(of), of.verdict);
            }
            if !chapter.shaped.is_empty() {
                text.push('\n');
            }
            for of in &chapter.fitted {
                if let Some(why) = of.trouble {
                    let _ = write!(text, "\nNot fitted: {}: {why}\n", of.text);
                    continue;
                }
                let _ = write!(
                    text,
                    "\nFitted by least squares: {}, which explains {:.2} % of the variance.\n\n",
                    of.text,
                    of.explained * 100.0
                );
                for factor in &of.factors {
                    let _ = writeln!(text, "- {}: **{}**", factor.text(), factor.verdict);
                }
            }
            let measures = chapter.measures();
            let row = |of: &crate::compare::Results| {
                let values = measures.iter().map(|name| of.measures.get(name).map(shown).unwrap_or_default());
                std::iter::once(of.point.label.clone()).chain(values).collect()
            };
            let rows: Vec<Vec<String>> = chapter.results.iter().take(ROWS).map(row).collect();
            let heads: Vec<String> = std::iter::once("point".to_owned()).chain(measures.clone()).collect();
            table_text(&mut text, &heads, &rows);
        }
    }
    text
}

fn table_text(text: &mut String, heads: &[String], rows: &[Vec<String>]) {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
    let _ = write!(text, "\n{}|{}\n", line(heads), "---|".repeat(heads.len()));
    rows.iter().for_each(|row| text.push_str(&line(row)));
}
