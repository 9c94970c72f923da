//! A sample of the scripts against the kernel; `make scripts-kernel` plays them all.

use inhost_script::suite;
use std::path::Path;

/// From each area one or two that take little real time.
const SAMPLE: &[&str] = &[
    "handshake/active",
    "handshake/passive",
    "handshake/passive-ipv6",
    "handshake/options-offered",
    "handshake/refused",
    "handshake/wrong-ack-in-syn-received",
    "handshake/half-open-discovery",
    "handshake/peer-mss-obeyed",
    "closing/active",
    "closing/simultaneous",
    "closing/time-wait-new-connection",
    "challenge/reset-in-window",
    "receiving/out-of-order-at-once",
    "receiving/paws-old-segment",
    "sending/nagle",
    "sending/zero-window-probe",
    "timer/retransmission",
    "congestion/slow-start",
    "sack/rfc2018-every-other-lost",
    "sack/rfc2883-duplicate-and-gap",
    "recovery/sack-fast-retransmit",
    "recovery/new-reno-full",
    "ecn/mark-echoed-until-answered",
    "path/too-big",
    "cookies/options-in-the-timestamp",
    "fastopen/server-takes-data",
    "options/defer-accept",
    "info/recovery",
];

#[test]
fn the_kernel_does_what_the_scripts_say_of_it() {
    if !inhost_interop::own_network() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let script = |name: &&str| suite::read(&folder.join(format!("{name}.script"))).unwrap();
    let scripts: Vec<_> = SAMPLE.iter().map(script).collect();
    for (script, verdict) in scripts.iter().zip(suite::all_on_kernel(&scripts)) {
        let wrong = suite::contradiction(&script.kernel, &verdict);
        assert!(wrong.is_none(), "{}: {wrong:?}: {verdict:?}", script.file);
    }
}
