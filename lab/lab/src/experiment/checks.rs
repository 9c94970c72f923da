//! What an experiment may not say, though it is one by its form.

use super::*;
use crate::fit::TERMS_MAX;

impl Experiment {
    /// Whether all that is judged can be judged.
    pub(super) fn check(&self) -> Result<(), String> {
        self.check_keys()?;
        for compare in &self.compare {
            let place = |why| format!("compare {}: {why}", compare.measure);
            self.check_values(compare).and_then(|()| compare.check()).map_err(place)?;
        }
        for shape in &self.shape {
            let points = (0..self.points()).filter(|&number| shape.at.has(&self.point(number))).count();
            shape.check(points).map_err(|why| format!("shape {}: {why}", shape.measure))?;
        }
        for fit in &self.fit {
            let place = |why| format!("fit {}: {why}", fit.measure);
            if !(1..=TERMS_MAX).contains(&fit.term.len()) {
                return Err(place(format!("give 1 to {TERMS_MAX} [[fit.term]]")));
            }
            let check = |term: &Term| term.check().map_err(|why| format!("{}: {why}", term.name));
            fit.term.iter().try_for_each(check).map_err(place)?;
        }
        Ok(())
    }
    /// Whether the source's values are for the points that there are.
    fn check_values(&self, compare: &Compare) -> Result<(), String> {
        let values =
            figures(&compare.paper, &compare.value)?.ok_or("give paper = \"PATH\" or value = NUMBER")?;
        let points = || (0..self.points()).map(|number| self.point(number));
        match compare.along.as_ref().map(|along| numbers("along", along)).transpose()? {
            Some(along) if along.len() != values.len() => {
                return Err(format!("{} values along {}", values.len(), along.len()));
            }
            Some(along) => {
                let first = self.keys().next().unwrap_or_default();
                let is_one = |point: Point| point.number_of(first).is_some_and(|at| along.contains(&at));
                if !points().any(is_one) {
                    return Err(format!("{first} is never one of the values of along"));
                }
            }
            None => {
                let chosen = points().filter(|point| compare.at.has(point)).count();
                if values.len() > 1 && values.len() != chosen {
                    let source = values.len();
                    return Err(format!(
                        "the source has {source} values, one for each point, and {chosen} points are compared; \
                         take this [[compare]] out, or choose with at and along"
                    ));
                }
            }
        }
        Ok(())
    }
    /// Whether all keys vary by which points are chosen, and all values are theirs.
    fn check_keys(&self) -> Result<(), String> {
        let varied = |key: &str| {
            let found = self.vary.iter().flat_map(|axis| &axis.keys).find(|(own, _)| own == key);
            found.map(|(_, values)| values).ok_or_else(|| {
                let keys: Vec<&str> = self.keys().collect();
                format!("{key} does not vary; the keys that do: {}", keys.join(", "))
            })
        };
        let chosen = |key: &String, wanted: &toml::Value| {
            let values = varied(key)?;
            let each = wanted.as_array().map_or(std::slice::from_ref(wanted), Vec::as_slice);
            match each.iter().find(|wanted| !values.iter().any(|value| is_one_of(value, wanted))) {
                Some(missing) => Err(format!("{key} is never {missing}")),
                None => Ok(()),
            }
        };
        let compared = self.compare.iter().map(|of| ("compare", &of.at));
        let shaped = self.shape.iter().map(|of| ("shape", &of.at));
        let plotted = self.plot.iter().map(|of| ("plot", &of.at));
        for (what, At(at)) in compared.chain(shaped).chain(plotted) {
            at.iter()
                .try_for_each(|(key, wanted)| chosen(key, wanted))
                .map_err(|e| format!("{what}, at: {e}"))?;
        }
        for (key, values) in self.compare.iter().flat_map(|of| &of.shown_at) {
            values.iter().try_for_each(|value| chosen(key, value)).map_err(|e| format!("shown_at: {e}"))?;
        }
        let by = self.plot.iter().map(|of| &of.by).chain(self.fit.iter().map(|of| &of.by));
        by.flat_map(Keys::iter).try_for_each(|key| varied(key).map(drop)).map_err(|e| format!("by: {e}"))
    }
}

impl Compare {
    fn check(&self) -> Result<(), String> {
        if self.tolerance.is_some() && self.tolerance_percent.is_some() {
            return Err("give tolerance or tolerance_percent, and not both".to_owned());
        }
        is_finite("scale", self.scale)?;
        is_not_negative("tolerance", self.tolerance)?;
        is_not_negative("tolerance_percent", self.tolerance_percent)
    }
}

impl Shape {
    /// `points` is at how many points it is judged.
    fn check(&self, points: usize) -> Result<(), String> {
        is_not_negative("slack_percent", Some(self.slack_percent))?;
        match (self.is, self.range.as_slice()) {
            (Going::Between, [least, most]) if least <= most => Ok(()),
            (Going::Between, []) => Err("is = \"between\" needs range = [LEAST, MOST]".to_owned()),
            (Going::Between, range) => {
                Err(format!("range = {range:?}: give two numbers, the least and the most, such as [1, 5]"))
            }
            (_, []) if points >= 2 => Ok(()),
            (_, []) => Err(format!(
                "is = \"rises\" and \"falls\" need at least 2 points, and it has {points}; choose them with at"
            )),
            (..) => Err("range belongs to is = \"between\"".to_owned()),
        }
    }
}

impl Term {
    fn check(&self) -> Result<(), String> {
        figures(&self.paper, &self.value)?;
        is_finite("scale", self.scale)?;
        is_finite("paper_scale", self.paper_scale)?;
        is_not_negative("tolerance_percent", self.tolerance_percent)
    }
}

/// The numbers of `paper` or `value`, of which there is one at most.
fn figures(paper: &Option<Figures>, value: &Option<Figures>) -> Result<Option<Vec<f64>>, String> {
    match (paper, value) {
        (Some(_), Some(_)) => Err("give paper or value, and not both".to_owned()),
        (one, other) => one.as_ref().or(other.as_ref()).map(|of| numbers("value", of)).transpose(),
    }
}

fn numbers(key: &str, of: &Figures) -> Result<Vec<f64>, String> {
    let list = of.numbers().map_err(|e| e.to_string())?;
    list.iter().try_for_each(|&number| is_finite(key, number))?;
    Ok(list)
}

fn is_finite(key: &str, number: f64) -> Result<(), String> {
    if number.is_finite() { Ok(()) } else { Err(format!("{key} is {number}; give a finite number")) }
}

/// Whether `number` may be how far something is from something else.
fn is_not_negative(key: &str, number: Option<f64>) -> Result<(), String> {
    match number {
        Some(number) if !number.is_finite() || number < 0.0 => {
            Err(format!("{key} = {number}: give a number from 0 on"))
        }
        _ => Ok(()),
    }
}
