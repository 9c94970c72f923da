//! The judge finds wrong what is wrong. Runs of the simulator only.

use super::chosen;
use super::families;
use super::judge::{Case, Judgement, Truth, judge, verdict};
use super::situation::{Draw, Expected, Recipe, Situation, Vantage};
use super::stacks::{self, Run, Stack};
use inhost_explain::{Cause, Sign};

const SEED: u64 = 7;

fn made(name: &str) -> (Recipe, Situation, Run) {
    let recipe = families::all().into_iter().find(|recipe| recipe.name == name).unwrap();
    let situation = (recipe.make)(&mut Draw::new(SEED, name));
    let run = stacks::run(Stack::Sim, &situation, SEED, None).unwrap();
    (recipe, situation, run)
}

#[test]
fn situations_in_the_simulator_are_explained() {
    for name in ["window-and-think", "loss-random"] {
        let (recipe, situation, run) = made(name);
        let truth = Truth::of(&run, &situation);
        assert_eq!(truth.unfit(&situation, Stack::Sim, &run), None);
        let cells = judge(recipe.name, &situation, Stack::Sim, &run, &truth).unwrap();
        assert_eq!(cells.len(), Vantage::ALL.len());
        for cell in cells {
            assert!(cell.is_right, "{cell:?}");
        }
    }
}

#[test]
fn what_is_not_so_is_wrong() {
    let (_, situation, run) = made("window-small");
    let verdict = verdict(&run.captures[0], None).unwrap().unwrap();
    let judged = |expected: &Expected, main_per_cent: f64| -> Judgement {
        let (stack, vantage, largest) = (Stack::Sim, Vantage::Sender, None);
        let names = expected.main.clone();
        Case { expected, stack, vantage, names, main_per_cent, largest }.judge(Some(&verdict))
    };
    let share = verdict.directions[0].shares[0].per_cent;
    let expected = situation.expected;
    assert_eq!(judged(&expected, share).wrong, Vec::<String>::new());

    let wrong = |expected: &Expected, main_per_cent: f64, words: &str| {
        let wrong = judged(expected, main_per_cent).wrong;
        assert!(wrong.iter().any(|of| of.contains(words)), "{wrong:?} has not {words:?}");
    };
    wrong(&expected, share - 11.0, "share off");
    wrong(&Expected::of(0, Cause::SlowStart), 0.0, "main cause");
    wrong(&Expected::of(1, Cause::ReceiverWindow), share, "of the other direction");
    wrong(&expected.clone().second(Cause::ThinkTime), share, "second cause");
    wrong(&expected.clone().sign(Sign::Reset), share, "reset is not found");

    // What is marked in advance may be guessed, but not with certainty, unless it is so for the time that was seen.
    let marked = |at| Expected::of(0, Cause::Pacing).unknown_at(at, &[Cause::ReceiverWindow], "for the test");
    assert!(verdict.confidence >= 0.8);
    wrong(&marked(Vantage::Sender), 0.0, "main cause");
    let is_right = |expected: &Expected| {
        let (stack, vantage, largest) = (Stack::Sim, Vantage::Sender, Some(Cause::ReceiverWindow));
        let case = Case { expected, stack, vantage, names: Vec::new(), main_per_cent: 0.0, largest };
        case.judge(Some(&verdict)).wrong.is_empty()
    };
    assert!(is_right(&marked(Vantage::Sender)) && !is_right(&marked(Vantage::Receiver)));
}

#[test]
fn what_is_tried_last_is_left_out_of_all_other_runs() {
    let is_last = |recipe: &Recipe| families::LAST.contains(&recipe.family);
    let named: Vec<String> = families::LAST.iter().map(|family| (*family).to_owned()).collect();
    assert!(!chosen(&[], false).iter().any(is_last) && !chosen(&named, false).iter().any(is_last));
    assert_eq!(chosen(&[], true).len(), families::all().len());
    for family in named {
        assert!(chosen(std::slice::from_ref(&family), true).iter().any(|recipe| recipe.family == family));
    }
}

#[test]
fn each_situation_has_a_name_of_its_own_and_a_reason_for_what_is_unknown() {
    let mut names: Vec<&str> = families::all().iter().map(|recipe| recipe.name).collect();
    assert!(names.len() >= 30);
    names.sort_unstable();
    assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
    let is_double = |recipe: &Recipe| {
        let expected = (recipe.make)(&mut Draw::new(SEED, recipe.name)).expected;
        assert!(expected.blind.iter().all(|blind| !blind.reason.is_empty()), "{}", recipe.name);
        assert!(expected.main.len() == 1 || !expected.names_reason.is_empty(), "{}", recipe.name);
        !expected.second.is_empty() || expected.second_sign.is_some()
    };
    let double = families::all().iter().filter(|recipe| is_double(recipe)).count();
    assert!(2 * double >= names.len(), "{double} of {} have two causes", names.len());
}
