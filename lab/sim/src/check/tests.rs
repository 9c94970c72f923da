use super::*;
use inhost_base::{Ipv4Addr, Sequence};
use inhost_wire::ipv4::Ipv4Header;
use inhost_wire::protocol;
use inhost_wire::tcp::{Flags, Segment, TcpOptions};

const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

/// A segment of host 0 or 1, as its frame.
#[derive(Clone, Copy)]
struct Said<'a> {
    from: usize,
    segment: Segment<'a>,
    ecn: u8,
}

fn said(from: usize, flags: Flags, sequence: u32, acknowledgment: u32, window: u16, data: &[u8]) -> Said<'_> {
    let mut options = TcpOptions::NONE;
    if flags.syn() {
        (options.window_scale, options.sack_permitted, options.mss) = (Some(3), true, Some(100));
    }
    let segment = Segment {
        source_port: 1,
        destination_port: 1,
        sequence: Sequence(sequence),
        acknowledgment: Sequence(acknowledgment),
        flags,
        window,
        urgent_pointer: 0,
        options,
        payload: data,
    };
    Said { from, segment, ecn: 0 }
}

impl Said<'_> {
    fn frame(&self) -> Vec<u8> {
        let (source, destination) = (HOSTS[self.from], HOSTS[1 - self.from]);
        let length = self.segment.length();
        let mut bytes = vec![0; 20 + length];
        let mut header = Ipv4Header::new(source, destination, protocol::TCP, length as u16);
        header.dscp_ecn = self.ecn;
        header.emit(&mut bytes);
        self.segment.emit(source.into(), destination.into(), &mut bytes[20..]);
        bytes
    }
}

fn seen(bytes: &[u8]) -> Seen<'_> {
    Seen { at: Instant::ZERO, link: 0, end: 0, bytes, is_ethernet: false, is_intact: true }
}

/// Host 0 as the checker sees it, after it opened to host 1. Its numbers begin at 100, the peer's at 900; both
/// windows are a thousand times eight, and a hundred bytes make the largest segment.
struct Trial(Checker);

impl Trial {
    fn opened() -> Trial {
        let mut trial = Trial(Checker::default());
        trial.sends(said(0, Flags::SYN, 100, 0, 1000, &[]));
        trial.receives(said(1, Flags::SYN | Flags::ACK, 900, 101, 1000, &[]));
        trial.sends(said(0, Flags::ACK, 101, 901, 1000, &[]));
        trial.receives(said(1, Flags::ACK, 901, 101, 1000, &[]));
        trial.is_clean();
        trial
    }
    fn sends(&mut self, said: Said<'_>) -> &mut Trial {
        self.0.sent(0, &seen(&said.frame()));
        self
    }
    fn receives(&mut self, said: Said<'_>) -> &mut Trial {
        self.0.delivered(0, &seen(&said.frame()));
        self
    }
    fn is_clean(&mut self) -> &mut Trial {
        assert_eq!(self.0.violations(), [] as [String; 0]);
        self
    }
    fn violates(&mut self, of: &str) {
        let [one] = self.0.violations() else { panic!("{:?}", self.0.violations()) };
        assert!(one.contains(of), "{one}");
    }
}

/// Data of the peer; host 0 has said nothing of its own.
fn data(sequence: u32, bytes: &[u8]) -> Said<'_> {
    said(1, Flags::ACK, sequence, 101, 1000, bytes)
}
fn ack(acknowledgment: u32) -> Said<'static> {
    said(0, Flags::ACK, 101, acknowledgment, 1000, &[])
}

#[test]
fn only_what_came_may_be_acknowledged() {
    let mut hasty = Trial::opened();
    hasty.receives(data(911, &[7; 10])).sends(ack(901)).is_clean();
    hasty.sends(ack(921)).violates("acknowledges what was not received");
    let mut patient = Trial::opened();
    patient.receives(data(911, &[7; 10])).receives(data(901, &[7; 10])).sends(ack(921)).is_clean();
}

#[test]
fn what_was_spoilt_did_not_come() {
    let mut trial = Trial::opened();
    let mut spoilt = data(901, &[7; 10]).frame();
    spoilt[45] ^= 4;
    trial.0.delivered(0, &Seen { is_intact: false, ..seen(&spoilt) });
    trial.sends(ack(911)).violates("acknowledges what was not received");
}

#[test]
fn a_wrong_checksum_is_seen() {
    let mut trial = Trial::opened();
    let mut frame = ack(901).frame();
    frame[36] ^= 1;
    trial.0.sent(0, &seen(&frame));
    trial.violates("wrong checksum");
}

#[test]
fn windows_do_not_shrink_by_more_than_their_unit() {
    let mut trial = Trial::opened();
    trial.sends(said(0, Flags::ACK, 101, 901, 1100, &[])).receives(data(901, &[7; 15]));
    // 15 bytes are acknowledged, and the field is less by two units of eight.
    trial.sends(said(0, Flags::ACK, 101, 916, 1098, &[])).is_clean();
    trial.sends(said(0, Flags::ACK, 101, 916, 1097, &[])).violates("shrinks its window");
}

#[test]
fn a_closed_window_takes_a_probe_and_no_more() {
    let full = |trial: &mut Trial| {
        trial.sends(said(0, Flags::ACK, 101, 901, 1000, &[1; 20]));
        trial.receives(said(1, Flags::ACK, 901, 121, 0, &[])).is_clean();
        // The edge of 8,000 stands: a peer does not take back what it offered.
        for start in (121..8100).step_by(99) {
            let bytes = [1; 99];
            let fits = (8101 - start).min(99) as usize;
            trial.sends(said(0, Flags::ACK, start, 901, 1000, &bytes[..fits]));
        }
        trial.is_clean();
    };
    let mut trial = Trial::opened();
    full(&mut trial);
    trial.sends(said(0, Flags::ACK, 8101, 901, 1000, &[1])).is_clean();
    let mut trial = Trial::opened();
    full(&mut trial);
    trial.sends(said(0, Flags::ACK, 8101, 901, 1000, &[1, 2])).violates("overruns the window");
}

#[test]
fn numbers_follow_each_other_and_fit_the_peer() {
    let send = |sequence, bytes| said(0, Flags::ACK, sequence, 901, 1000, bytes);
    Trial::opened().sends(send(102, &[1])).violates("leaves out numbers");
    Trial::opened().sends(send(101, &[1; 101])).violates("largest segment");
    let mut trial = Trial::opened();
    trial.sends(send(101, &[1; 50])).sends(send(101, &[1; 50])).is_clean();
    trial.receives(said(1, Flags::ACK, 901, 151, 1000, &[])).sends(send(150, &[1])).is_clean();
    trial.sends(send(141, &[1; 10])).violates("repeats what was acknowledged");
    let mut trial = Trial::opened();
    trial.sends(said(0, Flags::ACK | Flags::FIN, 101, 901, 1000, &[])).is_clean();
    trial.sends(send(102, &[1])).violates("goes on after its FIN");
}

#[test]
fn blocks_are_of_what_came() {
    let report = |acknowledgment, blocks: &[(u32, u32)]| {
        let mut ack = ack(acknowledgment);
        blocks.iter().for_each(|&(start, end)| {
            ack.segment.options.sack.push((Sequence(start), Sequence(end)));
        });
        ack
    };
    let came = |trial: &mut Trial| {
        trial.receives(data(911, &[7; 10])).receives(data(931, &[7; 10]));
    };
    for (acknowledgment, blocks, complaint) in [
        (901, &[(931, 941), (911, 921)][..], None),
        (901, &[(911, 921)], None),
        (901, &[(912, 918), (911, 921)], None), // D-SACK
        (901, &[(911, 922)], Some("was not received")),
        (901, &[(911, 941)], Some("was not received")),
        (901, &[(921, 911)], Some("empty block")),
        (901, &[(931, 941), (901, 921)], Some("was not received")),
    ] {
        let mut trial = Trial::opened();
        came(&mut trial);
        trial.sends(report(acknowledgment, blocks));
        match complaint {
            None => drop(trial.is_clean()),
            Some(of) => trial.violates(of),
        }
    }
    let mut trial = Trial::opened();
    came(&mut trial);
    trial.receives(data(901, &[7; 10])).sends(report(921, &[(901, 911), (931, 941)])).is_clean();
    trial.sends(report(921, &[(931, 941), (911, 921)])).violates("what it acknowledges");
}

#[test]
fn marks_are_for_who_agreed_and_are_echoed() {
    let open = |ecn| {
        let mut trial = Trial(Checker::default());
        let (asks, answers) =
            if ecn { (Flags::ECE | Flags::CWR, Flags::ECE) } else { (Flags::empty(), Flags::empty()) };
        trial.sends(said(0, Flags::SYN | asks, 100, 0, 1000, &[]));
        trial.receives(said(1, Flags::SYN | Flags::ACK | answers, 900, 101, 1000, &[]));
        trial.sends(said(0, Flags::ACK, 101, 901, 1000, &[])).is_clean();
        trial
    };
    let capable = |flags: Flags, bytes| Said { ecn: 2, ..said(0, Flags::ACK | flags, 101, 901, 1000, bytes) };
    open(false).sends(capable(Flags::empty(), &[1])).violates("lets be marked");
    open(true).sends(capable(Flags::empty(), &[])).violates("lets be marked");
    open(true)
        .sends(capable(Flags::empty(), &[1]))
        .is_clean()
        .sends(capable(Flags::empty(), &[1]))
        .violates("lets be");
    open(true).sends(capable(Flags::ECE, &[1])).violates("has not heard");
    open(true).sends(capable(Flags::CWR, &[1])).is_clean();
    open(false).sends(said(0, Flags::ACK | Flags::CWR, 101, 901, 1000, &[1])).violates("never asked");
    let marked = Said { ecn: 3, ..data(901, &[7; 10]) };
    open(true).receives(marked).sends(ack(911)).violates("does not echo");
    open(true).receives(marked).sends(said(0, Flags::ACK | Flags::ECE, 101, 911, 1000, &[])).is_clean();
}

#[test]
fn timestamps_go_forward_and_echo_what_came() {
    let stamped = |said: Said<'static>, times| {
        let mut said = said;
        said.segment.options.timestamps = Some(times);
        said
    };
    let open = || {
        let mut trial = Trial(Checker::default());
        trial.sends(stamped(said(0, Flags::SYN, 100, 0, 1000, &[]), (50, 0)));
        trial.receives(stamped(said(1, Flags::SYN | Flags::ACK, 900, 101, 1000, &[]), (7, 50)));
        trial.sends(stamped(ack(901), (51, 7))).is_clean();
        trial
    };
    open().sends(ack(901)).violates("leaves out timestamps");
    open().sends(stamped(ack(901), (49, 7))).violates("go back");
    open().sends(stamped(ack(901), (52, 8))).violates("did not come");
    Trial::opened().sends(stamped(ack(901), (1, 1))).violates("not agreed");
}

#[test]
fn who_is_silent_too_long_is_late() {
    let mut flow = Flow::default();
    let at = Instant::from_millis;
    let says = |flow: &mut Flow, said: Said<'_>, ms| {
        flow.says(&SegmentView::of(&seen(&said.frame())).unwrap(), at(ms)).unwrap();
    };
    let hears = |flow: &mut Flow, said: Said<'_>, ms| {
        flow.receives(&SegmentView::of(&seen(&said.frame())).unwrap(), at(ms));
    };
    says(&mut flow, said(0, Flags::SYN, 100, 0, 1000, &[]), 0);
    hears(&mut flow, said(1, Flags::SYN | Flags::ACK, 900, 101, 1000, &[]), 1);
    says(&mut flow, ack(901), 2);
    hears(&mut flow, data(901, &[1; 9]), 100);
    assert_eq!(flow.is_late(at(600), Instant::ZERO), None);
    assert!(flow.is_late(at(700), Instant::ZERO).is_some_and(|why| why.contains("not acknowledge")));
    assert_eq!(flow.is_late(at(700), at(650)), None, "its host was busy");
    says(&mut flow, ack(910), 700);
    assert_eq!(flow.is_late(at(100_000), Instant::ZERO), None);
    says(&mut flow, said(0, Flags::ACK, 101, 910, 1000, &[1]), 100_000);
    assert_eq!(flow.is_late(at(220_000), Instant::ZERO), None);
    assert!(flow.is_late(at(226_000), Instant::ZERO).is_some_and(|why| why.contains("not repeat")));
    hears(&mut flow, said(1, Flags::ACK, 910, 102, 1000, &[]), 226_000);
    assert_eq!(flow.is_late(at(400_000), Instant::ZERO), None);
}
