//! Threads: messages with their answers below them, by References and In-Reply-To.

use std::collections::HashMap;

/// Steps up from an answer that are taken; one that is deeper begins a thread of its own.
const DEPTH: usize = 100;
/// Levels that are drawn.
const SHOWN: usize = 8;

/// What a thread is made from.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Identifier of the message.
    pub id: Option<&'a str>,
    /// Identifiers of the messages before it, the oldest first.
    pub references: &'a [String],
    /// When it was written.
    pub date_s: i64,
}

/// A message in its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Which of the entries.
    pub index: usize,
    /// What is drawn in front of it.
    pub branch: String,
}

/// Nodes: first the entries, then messages that are named but not here.
#[derive(Default)]
struct Forest {
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    /// The date of the latest message below.
    latest: Vec<i64>,
}

/// Entries in threads: the thread with the latest message is last, or first if `reversed`. Within a thread, the oldest
/// is first.
pub fn arrange(entries: &[Entry<'_>], reversed: bool) -> Vec<Placed> {
    let mut forest = Forest::link(entries);
    let mut roots = forest.roots(entries.len());
    forest.date(entries, &roots);
    let date = |index: usize| entries.get(index).map_or(i64::MIN, |entry| entry.date_s);
    for children in &mut forest.children {
        children.sort_by_key(|child| (date(*child), *child));
    }
    roots.sort_by_key(|root| (forest.latest[*root], *root));
    if reversed {
        roots.reverse();
    }
    forest.drawn(&roots, entries.len())
}

impl Forest {
    fn link(entries: &[Entry<'_>]) -> Forest {
        let mut nodes: HashMap<&str, usize> = HashMap::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            if let Some(id) = entry.id {
                nodes.entry(id).or_insert(index);
            }
        }
        let mut forest = Forest { parents: vec![None; entries.len()], ..Forest::default() };
        for (index, entry) in entries.iter().enumerate() {
            let mut before = None;
            for id in entry.references {
                let node = *nodes.entry(id).or_insert_with(|| {
                    forest.parents.push(None);
                    forest.parents.len() - 1
                });
                if let Some(before) = before {
                    forest.join(node, before);
                }
                before = Some(node);
            }
            if let Some(before) = before {
                // Its own word on what it answers goes before that of others.
                forest.parents[index] = None;
                forest.join(index, before);
            }
        }
        forest
    }
    /// Puts `child` below `parent`, unless it is below another or that would make a circle.
    fn join(&mut self, child: usize, parent: usize) {
        if self.parents[child].is_some() {
            return;
        }
        let mut above = Some(parent);
        for _ in 0..DEPTH {
            match above {
                Some(node) if node == child => return,
                Some(node) => above = self.parents[node],
                None => {
                    self.parents[child] = Some(parent);
                    return;
                }
            }
        }
    }
    /// Nodes without a parent. Answers to a message that is not here stand below the first of them.
    fn roots(&mut self, entries: usize) -> Vec<usize> {
        self.children = vec![Vec::new(); self.parents.len()];
        for (node, parent) in self.parents.iter().enumerate() {
            if let Some(parent) = *parent {
                self.children[parent].push(node);
            }
        }
        let roots = (0..self.parents.len()).filter(|node| self.parents[*node].is_none());
        roots.filter(|node| *node < entries || !self.children[*node].is_empty()).collect()
    }
    /// Dates threads by their latest message.
    fn date(&mut self, entries: &[Entry<'_>], roots: &[usize]) {
        self.latest = vec![i64::MIN; self.parents.len()];
        let (mut order, mut at) = (roots.to_vec(), 0);
        while let Some(node) = order.get(at) {
            order.extend_from_slice(&self.children[*node]);
            at += 1;
        }
        for node in order.into_iter().rev() {
            let own = entries.get(node).map_or(i64::MIN, |entry| entry.date_s);
            self.latest[node] = self.latest[node].max(own);
            if let Some(parent) = self.parents[node] {
                self.latest[parent] = self.latest[parent].max(self.latest[node]);
            }
        }
    }
    /// In the order of the list, with branches. A node that is not here gives its place to its children.
    fn drawn(&self, roots: &[usize], entries: usize) -> Vec<Placed> {
        // Nodes to draw, the next one last: with the branch in front of their children, their level, and whether a
        // sibling follows.
        let mut stack: Vec<(usize, String, usize, bool)> =
            roots.iter().rev().map(|root| (*root, String::new(), 0, false)).collect();
        let mut placed = Vec::with_capacity(entries);
        while let Some((node, lead, level, has_next)) = stack.pop() {
            if node >= entries {
                // The first child takes its place, and the others stand below that.
                let (first, others) = match self.children[node].split_first() {
                    Some(split) => split,
                    None => continue,
                };
                let below = if level == 0 { String::new() } else { lead.clone() };
                for (at, other) in others.iter().enumerate().rev() {
                    match level {
                        0 => stack.push((*other, below.clone(), 1, at + 1 < others.len())),
                        _ => stack.push((*other, lead.clone(), level, at + 1 < others.len() || has_next)),
                    }
                }
                stack.push((*first, lead, level, (level > 0 && !others.is_empty()) || has_next));
                continue;
            }
            let is_drawn = level > 0 && level <= SHOWN;
            let branch = match (level, has_next) {
                (0, _) => String::new(),
                _ if !is_drawn => format!("{lead}…"),
                (_, true) => format!("{lead}├>"),
                (_, false) => format!("{lead}└>"),
            };
            placed.push(Placed { index: node, branch });
            let below = match has_next {
                _ if !is_drawn => lead,
                true => format!("{lead}│ "),
                false => format!("{lead}  "),
            };
            let children = &self.children[node];
            for (at, child) in children.iter().enumerate().rev() {
                stack.push((*child, below.clone(), level + 1, at + 1 < children.len()));
            }
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(messages: &[(&str, &[&str], i64)]) -> Vec<String> {
        let references: Vec<Vec<String>> =
            messages.iter().map(|(_, all, _)| all.iter().map(|id| (*id).to_owned()).collect()).collect();
        let entries: Vec<_> = messages
            .iter()
            .zip(&references)
            .map(|((id, _, date_s), references)| Entry { id: Some(*id), references, date_s: *date_s })
            .collect();
        let placed = arrange(&entries, false);
        assert_eq!(placed.len(), messages.len(), "each is there once");
        placed.iter().map(|one| format!("{}{}", one.branch, messages[one.index].0)).collect()
    }

    #[test]
    fn answers_stand_below_what_they_answer() {
        let messages: &[(&str, &[&str], i64)] =
            &[("late", &[], 9), ("b", &["a"], 2), ("a", &[], 1), ("d", &["a", "b"], 4), ("c", &["a"], 3)];
        assert_eq!(shown(messages), ["a", "├>b", "│ └>d", "└>c", "late"]);
    }

    #[test]
    fn answers_to_a_message_that_is_not_here_are_together() {
        let messages: &[(&str, &[&str], i64)] =
            &[("x", &["gone"], 5), ("alone", &[], 6), ("y", &["gone"], 7), ("z", &["gone", "y"], 8)];
        assert_eq!(shown(messages), ["alone", "x", "└>y", "  └>z"]);
    }

    #[test]
    fn circles_copies_and_endless_threads_do_no_harm() {
        assert_eq!(shown(&[("a", &["b"], 1), ("b", &["a"], 2)]).len(), 2);
        assert_eq!(shown(&[("a", &["a"], 1), ("a", &["a"], 2)]).len(), 2);
        let names: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
        for newest_first in [false, true] {
            let references: Vec<Vec<String>> = (0..names.len())
                .map(|n| n.checked_sub(1).map(|n| names[n].clone()).into_iter().collect())
                .collect();
            let mut entries: Vec<_> = (0..names.len())
                .map(|n| Entry { id: Some(&names[n]), references: &references[n], date_s: n as i64 })
                .collect();
            if newest_first {
                entries.reverse();
            }
            let placed = arrange(&entries, false);
            assert_eq!(placed.len(), names.len());
            assert!(placed.iter().all(|one| one.branch.chars().count() <= 2 * SHOWN + 1));
        }
    }
}
