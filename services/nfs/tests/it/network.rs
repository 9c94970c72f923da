//! Calls over a network that loses, repeats, delays and so reorders as its seed says, in virtual time: what must not be
//! done twice is done once.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use inhost_base::{Duration, Instant};
use inhost_nfs::client::{CallSettings, Calls};
use inhost_nfs::codec::mount::{self, MountReply};
use inhost_nfs::codec::nfs::{
    self, CreateArguments, Data, Handle, How, Named, Outcome, Procedure, RenameArguments, SetAttributes,
    Stable, WriteArguments,
};
use inhost_nfs::codec::rpc::{Credentials, Target};
use inhost_nfs::codec::xdr::{Xdr, from_octets};
use inhost_nfs::server::folder::{Durability, FolderTree};
use inhost_nfs::server::{Answer, Caller, ExportRules, Programs, Server};

use super::place::Place;

struct Network {
    random: u64,
    now: Instant,
    sent: u64,
    lost: u64,
    repeated: u64,
    /// By when it arrives: whether it is a call, and its octets.
    under_way: BTreeMap<(Instant, u64), (bool, Vec<u8>)>,
    calls: Calls,
    server: Server,
}

impl Network {
    fn new(place: &Place, seed: u64) -> Network {
        let server = Server::new(&[7; 32], 1);
        let mut rules = ExportRules::default();
        rules.path = "/files".into();
        rules.networks = vec!["*".parse().unwrap()];
        rules.is_writable = true;
        rules.anonymous = Some((rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()));
        let tree = FolderTree::open(&place.0.join("server"), Durability::Later).unwrap();
        server.set_exports(vec![(rules, Arc::new(tree))]);
        let mut settings = CallSettings::datagrams();
        settings.give_up_after = Duration::from_secs(3600);
        Network {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            now: Instant::from_millis(1),
            sent: 0,
            lost: 0,
            repeated: 0,
            under_way: BTreeMap::new(),
            calls: Calls::new(settings, seed as u32),
            server,
        }
    }
    /// A number below `limit`.
    fn draw(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 16) % limit
    }
    fn send(&mut self, is_call: bool, message: &[u8]) {
        let copies = match self.draw(10) {
            0..=1 => 0,
            2..=3 => 2,
            _ => 1,
        };
        self.lost += u64::from(copies == 0);
        self.repeated += u64::from(copies == 2);
        for _ in 0..copies {
            self.sent += 1;
            // Some arrive seconds later, behind others that were sent after them.
            let delay = if self.draw(8) == 0 { 4000 } else { 1 + self.draw(20) };
            let at = self.now + Duration::from_millis(delay);
            self.under_way.insert((at, self.sent), (is_call, message.to_vec()));
        }
    }
    /// Lets the next thing happen.
    fn step(&mut self) {
        while let Some(message) = self.calls.transmit(self.now).map(<[u8]>::to_vec) {
            self.send(true, &message);
        }
        let arrives = self.under_way.keys().next().copied();
        let deadline = self.calls.deadline();
        match (arrives, deadline) {
            (Some(key), deadline) if deadline.is_none_or(|deadline| key.0 <= deadline) => {
                self.now = self.now.max(key.0);
                let Some((is_call, message)) = self.under_way.remove(&key) else { return };
                if !is_call {
                    self.calls.received(&message);
                    return;
                }
                let here = IpAddr::from([10, 9, 0, 1]);
                let caller = Caller { address: here, port: 1000, local: here, is_datagram: true };
                if let Answer::Reply(reply) = self.server.answer(&message, caller, Programs::Files, self.now)
                {
                    self.send(false, &reply);
                }
            }
            (_, Some(deadline)) => {
                self.now = self.now.max(deadline);
                self.calls.timeout(self.now);
            }
            _ => panic!("nothing happens any more"),
        }
    }
    fn call<R: Xdr>(&mut self, target: Target, arguments: &impl Xdr) -> R {
        let xid = self.calls.begin(target, &Credentials::None, arguments, self.now).unwrap();
        for _ in 0..10_000 {
            self.step();
            if let Some(result) = self.calls.take(xid) {
                return from_octets(&result.unwrap()).unwrap();
            }
        }
        panic!("a call has no end");
    }
    fn files<P: Procedure<Results = Outcome<T, F>>, T: Xdr, F: Xdr + std::fmt::Debug>(
        &mut self,
        arguments: &P::Arguments,
    ) -> T {
        let target = Target { program: nfs::PROGRAM, version: nfs::VERSION, procedure: P::NUMBER };
        self.call::<Outcome<T, F>>(target, arguments).unwrap_or_else(|failed| panic!("{failed:?}"))
    }
}

fn place(directory: &Handle, name: String) -> nfs::Place {
    nfs::Place { directory: directory.clone(), name: nfs::Name(name.into_bytes()) }
}

#[test]
fn each_call_is_done_once_whatever_is_lost_or_repeated() {
    let (mut lost, mut repeated, mut again) = (0, 0, 0);
    for seed in 1..=20 {
        let folder = Place::new("network");
        let mut network = Network::new(&folder, seed);
        let target =
            Target { program: mount::PROGRAM, version: mount::VERSION, procedure: mount::procedure::MNT };
        let mounted: MountReply = network.call(target, &mount::Path::from("/files"));
        let root = mounted.0.unwrap().0;
        for number in 0..20 {
            let name = |stage: &str| place(&root, format!("{stage}{number}"));
            let how = How::Guarded(SetAttributes::default());
            let made = network.files::<nfs::Create, _, _>(&CreateArguments { place: name("new"), how });
            let file = made.object.unwrap();
            // The last of several writes to one place counts, however late the first ones arrive again.
            for octet in 0..4u8 {
                let data = Data(vec![octet; 1000]);
                let stable = Stable::Unstable;
                let write = WriteArguments { file: file.clone(), offset: 0, count: 1000, stable, data };
                network.files::<nfs::Write, _, _>(&write);
            }
            let rename = RenameArguments { from: name("new"), to: name("moved") };
            network.files::<nfs::Rename, _, _>(&rename);
            if number % 2 == 1 {
                network.files::<nfs::Remove, _, _>(&Named { place: name("moved") });
            }
        }
        while !network.under_way.is_empty() {
            network.step();
        }
        for number in 0..20 {
            let moved = folder.0.join(format!("server/moved{number}"));
            assert!(!folder.0.join(format!("server/new{number}")).exists(), "seed {seed}");
            assert_eq!(moved.exists(), number % 2 == 0, "seed {seed}");
            if number % 2 == 0 {
                assert!(std::fs::read(&moved).unwrap() == [3; 1000], "seed {seed}");
            }
        }
        lost += network.lost;
        repeated += network.repeated;
        again += network.calls.retransmitted();
    }
    assert!(
        lost > 500 && repeated > 500 && again > 500,
        "{lost} lost, {repeated} repeated, {again} sent again"
    );
}
