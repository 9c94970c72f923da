//! The state table beside a second one, which is written out here in the shape of the standard's own.

use inhost_xti::{Event, Position, State};

/// Events by states, in the order of [`State::ALL`]: the next state, and what becomes of the count of outstanding
/// indications (`0` set to zero, `+` one more, `-` one less). A dot is no entry. Before the colon stands the event, with the
/// counts for which it is defined, where they matter.
const TABLE: &str = "
event           | UNINIT | UNBND    | IDLE     | OUTCON   | INCON      | DATAXFER | OUTREL | INREL
opened          | UNBND  | .        | .        | .        | .          | .        | .      | .
bind            | .      | IDLE 0   | .        | .        | .          | .        | .      | .
optmgmt         | .      | UNBND    | IDLE     | OUTCON   | INCON      | DATAXFER | OUTREL | INREL
unbind          | .      | .        | UNBND    | .        | .          | .        | .      | .
closed          | .      | UNINIT 0 | UNINIT 0 | UNINIT 0 | UNINIT 0   | UNINIT 0 | UNINIT 0 | UNINIT 0
connect1        | .      | .        | DATAXFER | .        | .          | .        | .      | .
connect2        | .      | .        | OUTCON   | .        | .          | .        | .      | .
accept1 =1      | .      | .        | .        | .        | DATAXFER - | .        | .      | .
accept2 =1      | .      | .        | .        | .        | IDLE -     | .        | .      | .
accept3 >1      | .      | .        | .        | .        | INCON -    | .        | .      | .
snd             | .      | .        | .        | .        | .          | DATAXFER | .      | INREL
snddis1 <=1     | .      | .        | .        | IDLE     | IDLE -     | IDLE     | IDLE   | IDLE
snddis2 >1      | .      | .        | .        | .        | INCON -    | .        | .      | .
sndrel          | .      | .        | .        | .        | .          | OUTREL   | .      | IDLE
sndudata        | .      | .        | IDLE     | .        | .          | .        | .      | .
rcvudata        | .      | .        | IDLE     | .        | .          | .        | .      | .
rcvuderr        | .      | .        | IDLE     | .        | .          | .        | .      | .
rcvconnect      | .      | .        | .        | DATAXFER | .          | .        | .      | .
listen          | .      | .        | INCON +  | .        | INCON +    | .        | .      | .
rcv             | .      | .        | .        | .        | .          | DATAXFER | OUTREL | .
rcvdis1 =0      | .      | .        | .        | IDLE     | .          | IDLE     | IDLE   | IDLE
rcvdis2 =1      | .      | .        | .        | .        | IDLE -     | .        | .      | .
rcvdis3 >1      | .      | .        | .        | .        | INCON -    | .        | .      | .
rcvrel          | .      | .        | .        | .        | .          | INREL    | IDLE   | .
passconn        | .      | DATAXFER | DATAXFER | .        | .          | .        | .      | .
";

fn state_named(name: &str) -> State {
    let full = format!("T_{name}");
    State::ALL.into_iter().find(|state| state.name() == full).unwrap_or_else(|| panic!("no state {name}"))
}

fn event_named(name: &str) -> Event {
    let is_it = |event: &Event| format!("{event:?}").to_lowercase() == name;
    Event::ALL.into_iter().find(is_it).unwrap_or_else(|| panic!("no event {name}"))
}

/// What a line of the text says of `outstanding` indications in a state.
fn expected(cell: &str, condition: Option<&str>, outstanding: usize) -> Option<Position> {
    let is_defined = match condition {
        None => true,
        Some("=0") => outstanding == 0,
        Some("=1") => outstanding == 1,
        Some("<=1") => outstanding <= 1,
        Some(">1") => outstanding > 1,
        Some(other) => panic!("{other}"),
    };
    let mut words = cell.split_whitespace();
    let state = words.next().filter(|name| is_defined && *name != ".")?;
    let outstanding = match words.next() {
        None => outstanding,
        Some("0") => 0,
        Some("+") => outstanding + 1,
        Some("-") => outstanding - 1,
        Some(other) => panic!("{other}"),
    };
    Some(Position { state: state_named(state), outstanding })
}

/// The standard keeps a count only while indications are outstanding.
fn counts_of(state: State) -> &'static [usize] {
    if state == State::Incon { &[1, 2, 3] } else { &[0] }
}

#[test]
fn every_state_meets_every_event_as_the_standard_prints_it() {
    let mut lines = TABLE.trim().lines();
    let head = lines.next().unwrap();
    let states: Vec<State> = head.split('|').skip(1).map(|name| state_named(name.trim())).collect();
    assert_eq!(states, State::ALL);
    let (mut events, mut compared, mut entries) = (Vec::new(), 0, 0);
    for line in lines {
        let mut cells = line.split('|').map(str::trim);
        let mut words = cells.next().unwrap().split_whitespace();
        let (event, condition) = (event_named(words.next().unwrap()), words.next());
        events.push(event);
        let cells: Vec<&str> = cells.collect();
        assert_eq!(cells.len(), states.len(), "{line}");
        for (&state, cell) in states.iter().zip(cells) {
            for &outstanding in counts_of(state) {
                let expected = expected(cell, condition, outstanding);
                let found = Position { state, outstanding }.after(event);
                assert_eq!(found, expected, "{event:?} in {state} with {outstanding} outstanding");
                compared += 1;
                entries += usize::from(expected.is_some());
            }
        }
    }
    events.sort_unstable();
    assert_eq!(
        events,
        Event::ALL.into_iter().collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    );
    assert_eq!((compared, entries), (25 * 10, 59));
}

#[test]
fn the_variants_of_an_event_follow_from_the_count_and_the_endpoint() {
    assert_eq!(Event::accept(1, true), Event::Accept1);
    assert_eq!(Event::accept(1, false), Event::Accept2);
    assert_eq!([2, 9].map(|count| Event::accept(count, false)), [Event::Accept3; 2]);
    assert_eq!([0, 1, 2].map(Event::snddis), [Event::Snddis1, Event::Snddis1, Event::Snddis2]);
    assert_eq!([0, 1, 2].map(Event::rcvdis), [Event::Rcvdis1, Event::Rcvdis2, Event::Rcvdis3]);
}
