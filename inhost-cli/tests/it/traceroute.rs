//! `inhost traceroute` through routers that are Linux kernels, in network namespaces of their own, beside Debian's
//! traceroute. Needs root.

use crate::common::{Folder, Serve, inhost};
use inhost_interop::{Running, output, own_network, run, until};
use std::process::Command;

const LINK: &str = "tap:inway0,address=10.9.0.2/24,address=fd09::2/64,host=10.9.0.1/24,host=fd09::1/64,\
                    gateway=10.9.0.1,gateway=fd09::1";
/// Where the way ends: behind this namespace, a router, and a link of 1,400 bytes.
const END_V4: &str = "10.9.2.2";
const END_V6: &str = "fd09:2::2";

/// A network namespace, for as long as a process sleeps in it.
struct Namespace(Running);

impl Namespace {
    fn new() -> Namespace {
        let namespace = Namespace(Running::start(Command::new("unshare").args(["--net", "sleep", "600"])));
        let name = || std::fs::read_to_string(format!("/proc/{}/comm", namespace.pid())).unwrap();
        until("sleep in its namespace", || (name().trim() == "sleep").then_some(()));
        namespace.run("ip link set lo up");
        namespace
    }
    fn pid(&self) -> u32 {
        self.0.id()
    }
    fn run(&self, command: &str) -> String {
        let pid = self.pid().to_string();
        let mut arguments = vec!["--net", "--target", &pid, "--"];
        arguments.extend(command.split(' '));
        run(Command::new("nsenter").args(&arguments))
    }
}

/// Settings of the namespace that this thread is in.
fn become_router(namespace: Option<&Namespace>) {
    for (file, value) in [
        ("ipv4/ip_forward", "1"),
        ("ipv6/conf/all/forwarding", "1"),
        ("ipv4/icmp_ratelimit", "0"),
        ("ipv6/icmp/ratelimit", "0"),
        ("ipv6/conf/default/accept_dad", "0"),
    ] {
        let set = format!("echo {value} > /proc/sys/net/{file}");
        match namespace {
            None => drop(run(Command::new("sh").args(["-c", &set]))),
            Some(namespace) => {
                let pid = namespace.pid().to_string();
                run(Command::new("nsenter").args(["--net", "--target", &pid, "--", "sh", "-c", &set]));
            }
        }
    }
}

/// This namespace, a router behind it, and the end; and a neighbour of ours who asks as Debian does.
struct RoutedPath {
    router: Namespace,
    end: Namespace,
    neighbour: Namespace,
}

impl RoutedPath {
    fn new() -> RoutedPath {
        let path =
            RoutedPath { router: Namespace::new(), end: Namespace::new(), neighbour: Namespace::new() };
        let RoutedPath { router, end, neighbour } = &path;
        become_router(None);
        [router, end, neighbour].into_iter().for_each(|namespace| become_router(Some(namespace)));
        let veth = |name: &str, peer: &str, to: &Namespace| {
            let pid = to.pid().to_string();
            run(Command::new("ip")
                .args(["link", "add", name, "type", "veth", "peer", "name", peer, "netns", &pid]));
        };
        veth("here1", "near1", router);
        veth("here3", "near3", neighbour);
        let (pid, peer) = (end.pid().to_string(), "near2");
        router.run(&format!("ip link add far2 mtu 1400 type veth peer name {peer} mtu 1400 netns {pid}"));
        let ip = |text: &str| drop(run(Command::new("ip").args(text.split(' '))));
        for (device, net) in [("here1", 1), ("here3", 3)] {
            ip(&format!("address add 10.9.{net}.1/24 dev {device}"));
            ip(&format!("address add fd09:{net}::1/64 dev {device} nodad"));
            ip(&format!("link set {device} up"));
        }
        let place = |namespace: &Namespace, device: &str, net: u8, host: u8| {
            namespace.run(&format!("ip address add 10.9.{net}.{host}/24 dev {device}"));
            namespace.run(&format!("ip address add fd09:{net}::{host}/64 dev {device} nodad"));
            namespace.run(&format!("ip link set {device} up"));
        };
        place(router, "near1", 1, 2);
        place(router, "far2", 2, 1);
        place(end, "near2", 2, 2);
        place(neighbour, "near3", 3, 2);
        ip("route add 10.9.2.0/24 via 10.9.1.2");
        ip("route add fd09:2::/64 via fd09:1::2");
        for (namespace, net, gateway) in [(router, 1, 1), (end, 2, 1), (neighbour, 3, 1)] {
            namespace.run(&format!("ip route add default via 10.9.{net}.{gateway}"));
            namespace.run(&format!("ip route add default via fd09:{net}::{gateway}"));
        }
        path
    }
}

/// What our command prints, which must succeed.
fn traces(folder: &Folder, arguments: &[&str]) -> String {
    run(inhost(&folder.0).arg("traceroute").args(["--link", LINK]).args(arguments))
}

/// Who answers at each hop.
fn answerers(text: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let hops = text.lines().map(words).filter(|words| words[0].parse::<u8>().is_ok());
    hops.map(|words| words[1].clone()).collect()
}

#[test]
fn the_way_through_kernels_is_the_one_that_debians_traceroute_finds() {
    if !own_network() {
        return;
    }
    let path = RoutedPath::new();
    let folder = Folder::new("traceroute");
    for (end, first, theirs) in [(END_V4, "10.9.0.1", &["10.9.3.1"][..]), (END_V6, "fd09::1", &["fd09:3::1"])]
    {
        for (ours, debians) in [("udp", "--udp"), ("udp", "--icmp"), ("icmp", "--icmp"), ("tcp", "--tcp")] {
            let text = traces(&folder, &["-n", "--method", ours, end]);
            let found = answerers(&text);
            let there = path.neighbour.run(&format!("traceroute -n {debians} {end}"));
            let expected = answerers(&there);
            assert_eq!(expected[..1], *theirs, "{there}");
            assert_eq!((found[0].as_str(), &found[1..]), (first, &expected[1..]), "{text}{there}");
            assert_eq!(text.matches(" ms").count(), 9, "three answers of each hop: {text}");
            assert!(text.ends_with(&format!("{end} reached at hop 3\n")), "{text}");
        }
    }
    // An open port answers as well as a closed one.
    let pid = path.end.pid().to_string();
    let mut listener = Command::new("nsenter");
    listener.args([
        "--net",
        "--target",
        &pid,
        "--",
        "socat",
        "-d",
        "-d",
        "-u",
        "TCP4-LISTEN:8080,fork",
        "STDOUT",
    ]);
    let mut listener = Running::start(&mut listener);
    listener.wait_for("listening on");
    let text = traces(&folder, &["-n", "-M", "tcp", "--port", "8080", END_V4]);
    assert!(text.contains(" 3  10.9.2.2  ") && text.matches(" ms").count() == 9, "{text}");
    drop(path);
}

#[test]
fn the_narrow_link_is_found_and_so_is_one_that_nobody_tells_of() {
    if !own_network() {
        return;
    }
    let path = RoutedPath::new();
    let folder = Folder::new("traceroute");
    for (end, router) in [(END_V4, "10.9.1.2"), (END_V6, "fd09:1::2")] {
        for method in ["udp", "icmp", "tcp"] {
            let text = traces(&folder, &["-n", "--mtu", "-q", "1", "--json", "-M", method, end]);
            let report: serde_json::Value = serde_json::from_str(&text).unwrap();
            let mtus: Vec<_> = report["hops"].as_array().unwrap().iter().map(|hop| &hop["mtu"]).collect();
            assert_eq!(
                (mtus[0]["bytes"].as_u64(), mtus[1]["bytes"].as_u64()),
                (Some(1500), Some(1500)),
                "{text}"
            );
            assert_eq!(
                (mtus[2]["bytes"].as_u64(), mtus[2]["told_by"].as_str()),
                (Some(1400), Some(router)),
                "{text}"
            );
            assert_eq!(report["outcome"]["reached"], true);
        }
    }
    // The link's two ends disagree, as where a tunnel is misconfigured: what is too big vanishes (RFC 2923 §2.1). The
    // kernel's virtual link has room for four bytes more, a VLAN's tag.
    path.router.run("ip link set far2 mtu 1500");
    let text = traces(&folder, &["-n", "--mtu", "-q", "1", END_V4]);
    assert!(text.contains("  MTU 1404, larger packets vanish\n"), "{text}");
}

#[test]
fn a_way_that_ends_early_is_told_and_so_is_one_that_cannot_be_asked() {
    if !own_network() {
        return;
    }
    let path = RoutedPath::new();
    let folder = Folder::new("traceroute");
    path.router.run("ip route add unreachable 10.9.7.0/24");
    run(Command::new("ip").args(["route", "add", "10.9.7.0/24", "via", "10.9.1.2"]));
    let fails = |arguments: &[&str]| {
        let done = output(inhost(&folder.0).arg("traceroute").args(arguments));
        let text =
            format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        (done.status.code(), text)
    };
    let (code, text) = fails(&["--link", LINK, "-n", "10.9.7.7"]);
    assert!(code == Some(1) && text.contains("stopped at hop 2 by 10.9.1.2: host unreachable"), "{text}");
    let (code, text) = fails(&["--link", LINK, "-n", "-m", "1", END_V4]);
    assert!(code == Some(1) && text.contains("beyond hop 1"), "{text}");
    let (code, text) = fails(&["--link", "user", END_V4]);
    assert!(code == Some(2) && text.contains("hides the hops"), "{text}");
    let (code, text) = fails(&[END_V4]);
    assert!(code == Some(2) && text.contains("--link tap:"), "{text}");
}

#[test]
fn the_running_host_finds_the_same_way() {
    if !own_network() {
        return;
    }
    let path = RoutedPath::new();
    let serve = Serve::start("traceroute-via", &["--link", LINK, "--link", "user"]);
    let traceroute = |arguments: &[&str]| output(serve.inhost().arg("traceroute").args(arguments));
    // The host tests its addresses before it uses them.
    let report = until("the host's answer", || {
        let done = traceroute(&["-n", "--mtu", "--json", END_V4]);
        done.status.success().then(|| serde_json::from_slice::<serde_json::Value>(&done.stdout).unwrap())
    });
    let of = |hop: usize| &report["hops"][hop];
    for (hop, from) in [(0, "10.9.0.1"), (1, "10.9.1.2"), (2, END_V4)] {
        assert_eq!(of(hop)["replies"][0]["from"], from, "{report}");
    }
    assert_eq!((&of(2)["mtu"]["bytes"], &of(2)["mtu"]["told_by"]), (&1400.into(), &"10.9.1.2".into()));
    assert_eq!(report["outcome"], serde_json::json!({"reached": true, "hop": 3}));
    // The other link of the same host shows nothing.
    let done = traceroute(&["-n", "10.0.2.2"]);
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(2) && text.contains("hides the hops"), "{text}");
    drop(path);
}
