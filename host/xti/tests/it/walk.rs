//! Random calls on several endpoints at a time: whatever happens, each endpoint stays within the table.

use inhost_base::{Duration, Random};
use inhost_xti::{Provider, State};

use crate::common::{here, host, run};
use crate::walker::{Walker, step};

const PORTS: u32 = 4;

#[test]
fn random_calls_never_leave_the_table() {
    let mut reached = std::collections::BTreeSet::new();
    for seed in 0..200 {
        println!("seed {seed}");
        let host = host();
        let mut random = Random::from_number(seed);
        let providers =
            [Provider::Tcp, Provider::Tcp, Provider::Tcp, Provider::Tcp, Provider::Tcp, Provider::Udp];
        let mut walkers: Vec<Walker> =
            providers.into_iter().map(|provider| Walker::new(&host, provider)).collect();
        run(&host, async {
            for _ in 0..2_000 {
                let to = here(700 + random.public_below(PORTS) as u16);
                step(&host, &mut random, &mut walkers, [to; 2]);
                reached.extend(walkers.iter().map(Walker::state));
                if random.public_below(3) == 0 {
                    host.sleep(Duration::from_millis(u64::from(random.public_below(20)))).await;
                }
            }
        });
        drop(walkers);
        host.stop();
    }
    assert_eq!(reached.into_iter().collect::<Vec<_>>(), State::ALL);
}
