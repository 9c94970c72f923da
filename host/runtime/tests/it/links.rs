//! Links that die and come back, under the real clock. Those of the kernel need root.
#![allow(clippy::disallowed_methods)] // The kernel lives in real time.

use std::cell::RefCell;
use std::net::UdpSocket;
use std::process::Command;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint};
use inhost_interop::{own_network, run};
use inhost_link::{Driver, Spec, open};
use inhost_runtime::control::netstat_with_links;
use inhost_runtime::{LinkChange, LinkState, Runtime, interface};
use inhost_stack::{DuplicateDetection, StackConfig, UdpOptions};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(30);

fn ip(words: &str) {
    run(Command::new("ip").args(words.split(' ')));
}

/// A host on a link, and what it was told of it.
struct Place {
    runtime: Runtime,
    changes: Rc<RefCell<Vec<LinkChange>>>,
}

impl Place {
    fn new(text: &str) -> Place {
        let spec: Spec = text.parse().unwrap();
        let driver: Box<dyn Driver> = open(&spec).unwrap();
        let mut runtime = Runtime::new(StackConfig::default()).unwrap();
        let mut config = interface("under-test", &*driver);
        config.addresses.clone_from(&spec.addresses);
        config.duplicate_detection = DuplicateDetection::Off;
        let host = runtime.host().clone();
        runtime.add_link(&host, config, driver).unwrap();
        let changes: Rc<RefCell<Vec<LinkChange>>> = Rc::default();
        let heard = changes.clone();
        runtime.on_link_change(move |change| heard.borrow_mut().push(change.clone()));
        Place { runtime, changes }
    }
    /// Runs until `count` changes were told, and gives the last.
    fn change(&mut self, count: usize) -> LinkChange {
        let (host, changes) = (self.runtime.host().clone(), self.changes.clone());
        let told = async {
            while changes.borrow().len() < count {
                host.sleep(Duration::from_millis(5)).await;
            }
        };
        let told = self.runtime.run(host.timeout(LIMIT, told)).unwrap();
        told.unwrap_or_else(|_| panic!("told of {:?} only", self.changes.borrow()));
        self.changes.borrow()[count - 1].clone()
    }
    fn driver(&self) -> Value {
        netstat_with_links(self.runtime.host(), Some(&self.runtime.links()))["interfaces"][1]["driver"]
            .clone()
    }
    /// Whether a datagram to the kernel's end at `to` arrives.
    fn reaches(&mut self, to: &str) -> bool {
        let kernel = UdpSocket::bind(format!("{to}:9")).unwrap();
        kernel.set_nonblocking(true).unwrap();
        let host = self.runtime.host().clone();
        let ours = host.udp(Endpoint::new([10, 12, 0, 2], 0), UdpOptions::default()).unwrap();
        let to = Endpoint::new(to.parse::<std::net::Ipv4Addr>().unwrap(), 9);
        let arrives = async {
            while kernel.recv(&mut [0; 9]).is_err() {
                ours.send_to(b"hello", to).await.unwrap();
                host.sleep(Duration::from_millis(20)).await;
            }
        };
        self.runtime.run(host.timeout(Duration::from_secs(5), arrives)).unwrap().is_ok()
    }
}

#[test]
fn a_device_that_is_deleted_is_told_shown_and_made_again() {
    if !own_network() {
        return;
    }
    let mut place = Place::new("tun:inlink0,address=10.12.0.2/24,host=10.12.0.1/24");
    assert!(place.reaches("10.12.0.1"));
    assert_eq!(place.driver()["state"], "up");
    ip("link del inlink0");
    let down = place.change(1);
    assert!(matches!(&down.state, LinkState::Down { returns: true, .. }), "{down}");
    assert!(down.to_string().starts_with("link 1, tun inlink0"), "{down}");
    let shown = place.driver();
    assert_eq!((&shown["state"], &shown["down"]["returns"]), (&"down".into(), &true.into()), "{shown}");
    assert!(!shown["down"]["error"].as_str().unwrap().is_empty());
    let up = place.change(2);
    assert!(up.state == LinkState::Up && up.was_down >= Duration::from_secs(1), "{up}");
    assert_eq!(place.driver()["state"], "up");
    assert!(place.reaches("10.12.0.1"), "frames pass as before");
}

#[test]
fn a_device_of_somebody_elses_is_waited_for_and_not_made_in_his_place() {
    if !own_network() {
        return;
    }
    let make = || {
        ip("tuntap add dev inlink1 mode tun");
        ip("address add 10.12.0.1/24 dev inlink1");
        ip("link set inlink1 up");
    };
    make();
    let mut place = Place::new("tun:inlink1,address=10.12.0.2/24");
    assert!(place.reaches("10.12.0.1"));
    ip("link del inlink1");
    place.change(1);
    let host = place.runtime.host().clone();
    place.runtime.run(host.sleep(Duration::from_millis(1500))).unwrap();
    let shown = place.driver();
    assert_eq!((&shown["state"], &shown["down"]["tries"]), (&"down".into(), &1.into()), "{shown}");
    assert!(shown["down"]["error"].as_str().unwrap().contains("no such interface"), "{shown}");
    make();
    place.change(2);
    assert!(place.reaches("10.12.0.1"));
}

#[test]
fn a_pty_that_is_closed_is_told_and_does_not_come_back() {
    let spec: Spec = "serial:/dev/ptmx".parse().unwrap();
    let other = open(&spec).unwrap();
    let what = other.describe();
    let name = what.split("other end ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let mut place = Place::new(&format!("serial:{name},address=10.12.0.2/24"));
    drop(other);
    let down = place.change(1);
    assert!(matches!(down.state, LinkState::Down { .. }), "{down}");
    let host = place.runtime.host().clone();
    // What is sent meanwhile is lost, and a round that has nothing to do does not turn.
    let ours = host.udp(Endpoint::new([10, 12, 0, 2], 0), UdpOptions::default()).unwrap();
    place.runtime.run(ours.send_to(b"nobody", Endpoint::new([10, 12, 0, 1], 9))).unwrap().unwrap();
    let last = place.change(2);
    assert!(matches!(&last.state, LinkState::Down { returns: false, .. }), "{last}");
    assert_eq!(place.driver()["lost_frames"], 1, "{}", place.driver());
    let before = place.runtime.rounds();
    place.runtime.run(host.sleep(Duration::from_millis(300))).unwrap();
    assert!(place.runtime.rounds() - before < 20);
}
