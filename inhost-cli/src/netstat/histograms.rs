//! Histograms as text.

use inhost_explain::figures;
use serde_json::Value;
use std::fmt::Write as _;

/// Cells of the longest bar.
const BAR: usize = 50;

/// All of them: what each measures, its percentiles, and a bar for each range of values.
pub fn text(of: &Value) -> String {
    let all = of["histograms"].as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return "the host has no flight recorder, which measures\n".to_owned();
    }
    all.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(of: &Value) -> String {
    let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let shown = |value: u64| if of["unit"] == "ns" { figures::time(value) } else { figures::bytes(value) };
    let mut out = format!("{}: {}\n", words(&of["name"]), words(&of["about"]));
    let count = number(&of["count"]);
    if count == 0 {
        return out + "  nothing was measured\n";
    }
    let percentiles = of["percentiles"].as_array().into_iter().flatten();
    let percentiles = percentiles.map(|of| format!("{} % {}", of[0], shown(number(&of[1]))));
    let list: Vec<String> = percentiles.chain([format!("max {}", shown(number(&of["max"])))]).collect();
    let _ = writeln!(out, "  {count} measured; {}", list.join(", "));
    let buckets: Vec<[u64; 3]> = of["buckets"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|of| [0, 1, 2].map(|at| number(&of[at])))
        .collect();
    let most = buckets.iter().map(|[.., count]| *count).max().unwrap_or(1);
    for [from, to, count] in buckets {
        let range = if to <= 1 { "0".to_owned() } else { format!("{} to {}", shown(from), shown(to)) };
        let bar = "█".repeat((count as usize * BAR).div_ceil(most.max(1) as usize));
        let _ = writeln!(out, "  {range:>24} {count:>9} {bar}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_range_is_a_line() {
        let of = json!({"histograms": [
            {"name": "round trip", "about": "from data to its acknowledgment", "unit": "ns", "count": 3, "max": 1500,
                "percentiles": [[50.0, 900]], "buckets": [[0, 1, 1], [512, 1024, 2]]},
            {"name": "segment size", "about": "payload", "unit": "bytes", "count": 0, "buckets": [], "percentiles": []},
        ]});
        let text = text(&of);
        assert!(
            text.starts_with(
                "round trip: from data to its acknowledgment\n  3 measured; 50.0 % 900 ns, max 1.50 us\n"
            ),
            "{text}"
        );
        assert!(text.contains(&format!("0         1 {}\n", "█".repeat(25))), "{text}");
        assert!(text.contains(&format!("512 ns to 1.02 us         2 {}\n", "█".repeat(50))), "{text}");
        assert!(text.ends_with("\nsegment size: payload\n  nothing was measured\n"), "{text}");
    }
}
