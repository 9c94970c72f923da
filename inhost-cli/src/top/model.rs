//! What the screen shows, and what keys do to it. Nothing here asks the host or draws.

use std::collections::VecDeque;

use clap::ValueEnum;
use inhost_dashboard::Filter;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde::Deserialize;
use serde_json::Value;

use crate::args::Sort;
use crate::views::{Link, Overview, Row, Rows, list};

/// Steps of the rates over time.
const STEPS: usize = 300;
/// Samples of an opened connection: ten minutes.
const SAMPLES: usize = 6000;

/// A connection at one moment.
#[derive(Clone, Debug, Deserialize)]
pub struct Sample {
    pub at_ns: u64,
    pub acknowledged: u64,
    pub received: u64,
    pub in_flight: u32,
    pub rtt_ns: Option<u64>,
    pub cause: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Samples {
    pub samples: Vec<Sample>,
}

/// What the host answered.
#[derive(Clone, Debug)]
pub enum News {
    Overview(Overview),
    Rows(Rows),
    /// Figures of a connection, its new samples, and its verdict where it was asked for.
    Connection(String, Value, Samples, Option<Value>),
    /// The connection is over.
    Ended(String),
    /// The host does not answer.
    Silent(String),
    /// It answers that something is wrong.
    Refused(String),
}

/// What is to be asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The target of the list.
    pub list: String,
    /// A connection that is open, with the time of its last sample.
    pub connection: Option<String>,
    pub is_paused: bool,
}

/// Rates at one step: bytes in and out, segments sent again, and drops, in a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    pub received: f64,
    pub sent: f64,
    pub retransmitted: f64,
    pub dropped: f64,
}

/// A connection that is open.
#[derive(Clone, Debug, Default)]
pub struct Open {
    pub id: String,
    pub figures: Value,
    pub samples: VecDeque<Sample>,
    pub verdict: Value,
    pub is_over: bool,
}

/// What is on the screen.
#[derive(Clone, Debug)]
pub struct Model {
    pub overview: Overview,
    pub rates: VecDeque<Rates>,
    pub list: Rows,
    pub sort: Sort,
    pub is_descending: bool,
    pub filter: String,
    /// The filter while it is typed.
    pub typed: Option<String>,
    /// What was wrong with what was asked or typed.
    pub wrong: Option<String>,
    /// Why the host does not answer.
    pub silent: Option<String>,
    pub is_paused: bool,
    pub has_help: bool,
    /// The first row of the screen, and the one that is chosen, in the whole list.
    pub offset: usize,
    pub chosen: usize,
    /// Rows on the screen.
    pub height: usize,
    pub open: Option<Open>,
    pub has_ended: bool,
    totals: Option<(u64, [u64; 4])>,
}

impl Model {
    /// # Errors
    /// What is wrong with the filter.
    pub fn new(sort: Sort, filter: String) -> Result<Model, String> {
        filter.parse::<Filter>().map_err(|why| why.to_string())?;
        Ok(Model {
            overview: Overview::default(),
            rates: VecDeque::new(),
            list: Rows::default(),
            sort,
            is_descending: sort.is_descending_at_first(),
            filter,
            typed: None,
            wrong: None,
            silent: None,
            is_paused: false,
            has_help: false,
            offset: 0,
            chosen: 0,
            height: 20,
            open: None,
            has_ended: false,
            totals: None,
        })
    }
    /// What the screen needs.
    pub fn wanted(&self) -> Wanted {
        Wanted {
            list: list(&self.sort.name(), self.is_descending, self.offset, self.height.max(1), &self.filter),
            connection: self.open.as_ref().filter(|open| !open.is_over).map(|open| open.id.clone()),
            is_paused: self.is_paused,
        }
    }
    /// Takes what the host answered.
    pub fn take(&mut self, news: News) {
        if !matches!(news, News::Silent(_)) {
            self.silent = None;
        }
        match news {
            News::Overview(overview) => self.overview(overview),
            News::Rows(rows) => {
                self.list = rows;
                self.settle();
            }
            News::Connection(id, figures, new, verdict) => {
                let Some(open) = self.open.as_mut().filter(|open| open.id == id) else { return };
                open.figures = figures;
                let last = open.samples.back().map_or(0, |sample| sample.at_ns);
                open.samples.extend(new.samples.into_iter().filter(|sample| sample.at_ns > last));
                let surplus = open.samples.len().saturating_sub(SAMPLES);
                open.samples.drain(..surplus);
                open.verdict = verdict.unwrap_or(std::mem::take(&mut open.verdict));
            }
            News::Ended(id) => {
                if let Some(open) = self.open.as_mut().filter(|open| open.id == id) {
                    open.is_over = true;
                }
            }
            News::Silent(why) => self.silent = Some(why),
            News::Refused(why) => self.wrong = Some(why),
        }
    }
    fn overview(&mut self, overview: Overview) {
        let sum = |of: fn(&Link) -> u64| overview.links.iter().map(of).sum::<u64>();
        let dropped = |link: &Link| link.dropped.values().sum();
        let totals = [
            sum(|link| link.received_bytes),
            sum(|link| link.sent_bytes),
            overview.retransmissions,
            sum(dropped),
        ];
        if let Some((then, before)) = self.totals {
            let seconds = overview.uptime_ns.saturating_sub(then) as f64 / 1e9;
            // A host that was started anew counts from 0.
            let rate = |at: usize| totals[at].saturating_sub(before[at]) as f64 / seconds;
            if seconds > 0.0 {
                if self.rates.len() == STEPS {
                    self.rates.pop_front();
                }
                self.rates.push_back(Rates {
                    received: rate(0),
                    sent: rate(1),
                    retransmitted: rate(2),
                    dropped: rate(3),
                });
            }
        }
        self.totals = Some((overview.uptime_ns, totals));
        self.overview = overview;
    }
    /// Keeps what is chosen within the list, and in sight.
    fn settle(&mut self) {
        self.chosen = self.chosen.min(self.list.matched.saturating_sub(1));
        let height = self.height.max(1);
        self.offset = self.offset.clamp((self.chosen + 1).saturating_sub(height), self.chosen);
    }
    /// The screen has so many rows for connections.
    pub fn set_height(&mut self, height: usize) {
        self.height = height;
        self.settle();
    }
    /// The row that is chosen; none while it is asked for.
    pub fn chosen_row(&self) -> Option<&Row> {
        self.list.rows.get(self.chosen.checked_sub(self.offset)?)
    }
    /// Does what a key says.
    pub fn key(&mut self, key: KeyEvent) {
        self.wrong = None;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            self.has_ended = true;
        } else if self.typed.is_some() {
            self.type_filter(key.code, is_control);
        } else if self.has_help {
            self.has_help = false;
        } else if self.open.is_some() {
            self.key_of_connection(key.code);
        } else {
            self.key_of_list(key.code);
        }
    }
    fn key_of_connection(&mut self, code: KeyCode) {
        match code {
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left | KeyCode::Char('q') => self.open = None,
            KeyCode::Char('?' | 'h') => self.has_help = true,
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            _ => {}
        }
    }
    fn key_of_list(&mut self, code: KeyCode) {
        let last = self.list.matched.saturating_sub(1);
        match code {
            KeyCode::Char('q') => self.has_ended = true,
            KeyCode::Char('?' | 'h') => self.has_help = true,
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.typed = Some(self.filter.clone()),
            KeyCode::Char('r') => self.is_descending = !self.is_descending,
            KeyCode::Left | KeyCode::Char('<') => self.sort_by(-1),
            KeyCode::Right | KeyCode::Char('>') => self.sort_by(1),
            KeyCode::Up | KeyCode::Char('k') => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.chosen = (self.chosen + 1).min(last),
            KeyCode::PageUp => self.chosen = self.chosen.saturating_sub(self.height),
            KeyCode::PageDown => self.chosen = (self.chosen + self.height).min(last),
            KeyCode::Home => self.chosen = 0,
            KeyCode::End => self.chosen = last,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Enter => {
                let id = self.chosen_row().map(|row| row.id.clone());
                self.open = id.map(|id| Open { id, ..Open::default() });
            }
            _ => {}
        }
        self.settle();
    }
    /// Sorts by the column so many to the right.
    fn sort_by(&mut self, step: isize) {
        let all = Sort::value_variants();
        let at = all.iter().position(|&sort| sort == self.sort).unwrap_or(0);
        self.sort = all[(at as isize + step).rem_euclid(all.len() as isize) as usize];
        self.is_descending = self.sort.is_descending_at_first();
    }
    fn type_filter(&mut self, code: KeyCode, is_control: bool) {
        let Some(typed) = &mut self.typed else { return };
        match code {
            KeyCode::Esc => self.typed = None,
            KeyCode::Backspace => {
                typed.pop();
            }
            KeyCode::Char('u') if is_control => typed.clear(),
            KeyCode::Char(character) if !is_control => typed.push(character),
            KeyCode::Enter => match typed.parse::<Filter>() {
                Ok(_) => {
                    self.filter = typed.trim().to_owned();
                    (self.typed, self.offset, self.chosen) = (None, 0, 0);
                }
                Err(why) => self.wrong = Some(why.to_string()),
            },
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(model: &mut Model, codes: &[KeyCode]) {
        codes.iter().for_each(|&code| model.key(KeyEvent::new(code, KeyModifiers::NONE)));
    }

    fn rows(from: usize, count: usize, matched: usize) -> Rows {
        let row = |number: usize| Row { id: format!("{number:x}"), ..Row::default() };
        Rows { total: matched, matched, rows: (from..from + count).map(row).collect() }
    }

    #[test]
    fn what_is_chosen_stays_in_sight() {
        let mut model = Model::new(Sort::SendRate, String::new()).unwrap();
        model.set_height(10);
        model.take(News::Rows(rows(0, 10, 100)));
        press(&mut model, &[KeyCode::PageDown, KeyCode::Down]);
        assert_eq!((model.chosen, model.offset), (11, 2));
        assert!(model.wanted().list.starts_with("connections?sort=send_rate&order=desc&offset=2&limit=10&"));
        model.take(News::Rows(rows(2, 10, 100)));
        press(&mut model, &[KeyCode::Enter]);
        assert_eq!(model.wanted().connection.as_deref(), Some("b"));
        press(&mut model, &[KeyCode::Esc, KeyCode::End]);
        assert_eq!((model.chosen, model.offset), (99, 90));
        // Fewer are left.
        model.take(News::Rows(rows(0, 3, 3)));
        assert_eq!((model.chosen, model.offset), (2, 2));
        press(&mut model, &[KeyCode::Home]);
        assert_eq!(model.offset, 0);
        model.take(News::Rows(rows(0, 0, 0)));
        press(&mut model, &[KeyCode::Enter, KeyCode::Down]);
        assert!(model.open.is_none() && model.chosen == 0);
    }

    #[test]
    fn a_wrong_filter_stays_to_be_mended() {
        let mut model = Model::new(Sort::Age, String::new()).unwrap();
        let text = |model: &mut Model, text: &str| {
            press(model, &text.chars().map(KeyCode::Char).collect::<Vec<_>>());
        };
        press(&mut model, &[KeyCode::Char('/')]);
        text(&mut model, "dport = x:x");
        press(&mut model, &[KeyCode::Enter]);
        assert!(model.wrong.is_some() && model.typed.is_some() && model.filter.is_empty());
        model.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        text(&mut model, "dport = :443");
        press(&mut model, &[KeyCode::Enter]);
        assert_eq!((model.filter.as_str(), &model.typed), ("dport = :443", &None));
        assert!(model.wanted().list.ends_with("filter=dport%20%3D%20%3A443"));
        press(&mut model, &[KeyCode::Right, KeyCode::Char('r'), KeyCode::Char('q')]);
        assert!(model.sort == Sort::SendRate && !model.is_descending && model.has_ended);
        assert!(Model::new(Sort::Age, "(".to_owned()).is_err());
    }

    #[test]
    fn rates_are_between_two_looks() {
        let mut model = Model::new(Sort::Age, String::new()).unwrap();
        let link = |bytes| Link {
            received_bytes: bytes,
            sent_bytes: 0,
            dropped: [("checksum".to_owned(), bytes)].into(),
        };
        for (uptime_ns, bytes) in [(1_000_000_000, 100), (3_000_000_000, 500), (4_000_000_000, 100)] {
            model.take(News::Overview(Overview {
                uptime_ns,
                links: vec![link(bytes)],
                ..Overview::default()
            }));
        }
        let rates: Vec<f64> = model.rates.iter().map(|of| of.received).collect();
        assert_eq!(rates, [200.0, 0.0], "fewer bytes than before are not a rate");
        assert_eq!(model.rates[0].dropped, 200.0);
    }
}
