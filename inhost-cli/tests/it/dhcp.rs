//! The DHCP client of a running host against dnsmasq and Kea, each in its own network namespace. Needs root.

use crate::common::{Folder, Serve};
use inhost_interop::{Running, join, own_network, pause, run, within};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const TAP: &str = "indhcp0";
const LINK: &str = "tap:indhcp0,address=dhcp";

/// A TAP interface that waits for the host, with the kernel at 10.31.0.1 and fd31::1.
fn wire() -> bool {
    if !own_network() {
        return false;
    }
    run(Command::new("ip").args(["tuntap", "add", "dev", TAP, "mode", "tap"]));
    run(Command::new("ip").args(["address", "add", "10.31.0.1/24", "dev", TAP]));
    run(Command::new("ip").args(["address", "add", "fd31::1/64", "dev", TAP]));
    run(Command::new("ip").args(["link", "set", TAP, "up"]));
    true
}

/// A program of others in the background; one that is missing, or ends at once, fails the test.
fn start(program: &str, arguments: &[&str], folder: &Path) -> Running {
    let mut command = Command::new(program);
    command.args(arguments).env("KEA_PIDFILE_DIR", folder).env("KEA_LOCKFILE_DIR", folder);
    let mut running = Running::start_showing_errors(&mut command);
    let ended = within(Duration::from_millis(500), || running.child.try_wait().unwrap());
    assert!(ended.is_none(), "{program} ended at once");
    running
}

fn dnsmasq(folder: &Path, more: &[&str]) -> Running {
    let leases = format!("--dhcp-leasefile={}/leases", folder.display());
    let log = format!("--log-facility={}/log", folder.display());
    let mut arguments = vec!["--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--user=root"];
    arguments.extend([
        "--interface=indhcp0",
        "--bind-interfaces",
        "--except-interface=lo",
        "--no-resolv",
        "--no-hosts",
    ]);
    arguments.extend(["--no-ping", "--dhcp-authoritative", "--log-dhcp", &leases, &log]);
    arguments.extend(more);
    start("/usr/sbin/dnsmasq", &arguments, folder)
}

fn kea(folder: &Path, renew_s: u32, rebind_s: u32, lease_s: u32) -> Running {
    let config = serde_json::json!({"Dhcp4": {
        // The interface is not running before the host is there.
        "interfaces-config": {"interfaces": [TAP], "service-sockets-max-retries": 600,
            "service-sockets-retry-wait-time": 200},
        "lease-database": {"type": "memfile", "persist": false},
        "authoritative": true,
        "renew-timer": renew_s, "rebind-timer": rebind_s, "valid-lifetime": lease_s,
        "subnet4": [{"id": 1, "subnet": "10.31.0.0/24", "pools": [{"pool": "10.31.0.50 - 10.31.0.59"}],
            "option-data": [{"name": "routers", "data": "10.31.0.1"}]}],
        "loggers": [{"name": "kea-dhcp4", "severity": "INFO",
            "output_options": [{"output": folder.join("log").to_str().unwrap()}]}],
    }});
    let path = folder.join("kea.json");
    std::fs::write(&path, config.to_string()).unwrap();
    start("/usr/sbin/kea-dhcp4", &["-c", path.to_str().unwrap()], folder)
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// A host whose leases are kept in `state`.
fn host(state: &Path) -> Serve {
    let config = state.join("host.toml");
    let text = format!(
        "link = [\"{LINK}\"]\n[dhcp]\nstate = \"{}\"\nhost_name = \"ada\"\n[names]\nenabled = true\n",
        state.join("kept").display()
    );
    std::fs::write(&config, text).unwrap();
    let serve = Serve::start("dhcp", &["--config", config.to_str().unwrap()]);
    assert!(serve.banner.contains("an address by DHCP"), "{}", serve.banner);
    serve
}

/// The client's link.
fn link(state: &Value) -> &Value {
    let mut links = state["interfaces"].as_array().unwrap().iter();
    links.find(|link| link["name"] == TAP).unwrap()
}

/// Looks until the link is as it is wanted; gives the host's state then.
fn until(serve: &Serve, what: &str, seconds: u64, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut state = Value::Null;
    let look = || {
        pause(Duration::from_millis(100));
        state = serve.netstat();
        wanted(link(&state)).then_some(())
    };
    let found = within(Duration::from_secs(seconds), look);
    assert!(found.is_some(), "not {what} after {seconds} s: {}", link(&state));
    state
}

fn is_bound(link: &Value) -> bool {
    link["dhcp"]["state"] == "bound"
}
fn has_address(link: &Value, address: &str) -> bool {
    let mut addresses = link["addresses"].as_array().unwrap().iter();
    addresses.any(|own| own["address"] == address && own["state"] == "preferred")
}
fn routes(state: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let leased = state["routes"].as_array().unwrap().iter().filter(|route| route["origin"] == "leased");
    leased.map(|route| format!("{} {}", text(&route["destination"]), text(&route["gateway"]))).collect()
}
fn ping(address: &str) {
    let address = address.split('/').next().unwrap();
    run(Command::new("ping").args(["-c1", "-W2", address]));
}

#[test]
fn dnsmasq_lends_an_address_routes_names_and_tells_of_ipv6() {
    if !wire() {
        return;
    }
    let folder = Folder::new("dnsmasq");
    let ours = [
        "--dhcp-range=10.31.0.50,10.31.0.59,255.255.255.0,2m",
        "--dhcp-option=option:classless-static-route,0.0.0.0/0,10.31.0.1,172.20.0.0/16,10.31.0.2",
        "--dhcp-option=option:mtu,1400",
        "--dhcp-rapid-commit",
        "--dhcp-option=option:domain-search,lab.example,example",
        "--address=/printer.lab.example/10.31.0.77",
        "--enable-ra",
        "--dhcp-range=fd31::,ra-stateless",
        "--dhcp-option=option6:dns-server,[fd31::53]",
        "--dhcp-option=option6:domain-search,six.example",
    ];
    let server = dnsmasq(&folder.0, &ours);
    let serve = host(&folder.0);
    let state = until(&serve, "bound", 30, |link| is_bound(link) && link["dhcp"]["dhcpv6"] == "informed");
    let dhcp = &link(&state)["dhcp"];
    let address = dhcp["address"].as_str().unwrap().to_owned();
    assert!(has_address(link(&state), &address) && address.starts_with("10.31.0.5"), "{state}");
    assert_eq!(dhcp["server"], "10.31.0.1");
    let said = log(&folder.0);
    assert!(!said.contains("DHCPOFFER"), "it was lent at once: {said}");
    assert!(said.contains(" ada") && said.contains("DHCPACK"), "{said}");
    assert!((60..=120).contains(&dhcp["expires_in_s"].as_u64().unwrap()), "{dhcp}");
    assert_eq!(dhcp["name_servers"], serde_json::json!(["10.31.0.1", "fd31::53"]));
    assert_eq!(dhcp["search"], serde_json::json!(["lab.example", "example", "six.example"]));
    assert_eq!(link(&state)["mtu_bytes"], 1400);
    assert_eq!(routes(&state), ["172.20.0.0/16 10.31.0.2", "0.0.0.0/0 10.31.0.1"]);
    ping(&address);
    let shown = run(serve.inhost().args(["netstat", "interfaces"]));
    assert!(shown.contains(&format!("DHCP bound, {address} from 10.31.0.1, ")), "{shown}");
    // A short name, by the lease's server and in its domain.
    let control = serve.folder.0.join("inhost.sock");
    let asked = serde_json::json!({"op": "look_up", "name": "printer"});
    // The client itself has no deadline.
    let answer = join(std::thread::spawn(move || {
        let mut client = inhost_runtime::control::Client::open(&control).unwrap();
        client.request(&asked).unwrap().0
    }));
    assert_eq!(answer["addresses"][0], "10.31.0.77");
    // The forwarder asks the lease's server, too.
    let at = format!("@{}", address.split('/').next().unwrap());
    assert_eq!(run(Command::new("dig").args(["+short", &at, "printer.lab.example"])).trim(), "10.31.0.77");

    // Another start asks for the same address, and for nothing else.
    assert!(serve.end().success());
    let discovers = log(&folder.0).matches("DHCPDISCOVER").count();
    let serve = host(&folder.0);
    until(&serve, "bound again", 30, |link| is_bound(link) && has_address(link, &address));
    assert_eq!(log(&folder.0).matches("DHCPDISCOVER").count(), discovers, "{}", log(&folder.0));
    assert!(serve.end().success());

    // Another start without a server: what was lent holds while it lasts.
    drop(server);
    let serve = host(&folder.0);
    until(&serve, "rebooting", 10, |link| link["dhcp"]["state"] == "rebooting");
    until(&serve, "bound unconfirmed", 40, |link| is_bound(link) && has_address(link, &address));
    assert!(serve.end().success());

    // Another network lies behind the link now: its server says no, and lends another address.
    run(Command::new("ip").args(["address", "add", "10.32.0.1/24", "dev", TAP]));
    run(Command::new("ip").args(["address", "del", "10.31.0.1/24", "dev", TAP]));
    let other = Folder::new("dnsmasq-other");
    let _server = dnsmasq(&other.0, &["--dhcp-range=10.32.0.50,10.32.0.59,255.255.255.0,2m"]);
    let serve = host(&folder.0);
    let state = until(&serve, "bound elsewhere", 30, is_bound);
    assert!(log(&other.0).contains("DHCPNAK"), "{}", log(&other.0));
    let address = link(&state)["dhcp"]["address"].as_str().unwrap();
    assert!(address.starts_with("10.32.0.5"), "{address}");
    assert_eq!(routes(&state), ["0.0.0.0/0 10.32.0.1"]);
    ping(address);
    assert!(serve.end().success());
}

#[test]
fn kea_renews_a_short_lease_and_when_it_is_gone_the_lease_is_rebound_and_ends() {
    if !wire() {
        return;
    }
    let folder = Folder::new("kea");
    let server = kea(&folder.0, 5, 15, 25);
    let serve = host(&folder.0);
    let state = until(&serve, "bound", 30, is_bound);
    let address = link(&state)["dhcp"]["address"].as_str().unwrap().to_owned();
    assert_eq!(routes(&state), ["0.0.0.0/0 10.31.0.1"]);
    ping(&address);
    // Renewed after five seconds of 25. The test of the address may have taken them all, so it is new, older, and new.
    let left = |link: &Value| link["dhcp"]["expires_in_s"].as_u64().filter(|_| is_bound(link));
    for (what, is_new) in [("new", true), ("older", false), ("renewed", true)] {
        until(&serve, what, 20, |link| {
            left(link).is_some_and(|left_s| if is_new { left_s >= 23 } else { left_s <= 21 })
        });
    }
    assert_eq!(log(&folder.0).matches("DHCP4_LEASE_OFFER").count().max(1), 1, "{}", log(&folder.0));
    drop(server);
    until(&serve, "renewing", 20, |link| link["dhcp"]["state"] == "renewing" && has_address(link, &address));
    until(&serve, "rebinding", 20, |link| {
        link["dhcp"]["state"] == "rebinding" && has_address(link, &address)
    });
    let state = until(&serve, "selecting", 20, |link| link["dhcp"]["state"] == "selecting");
    assert!(!has_address(link(&state), &address) && routes(&state).is_empty(), "{state}");
    // Nobody answers any more: the link's own addresses are left, and the other end of the link has one as well.
    let state = until(&serve, "on its own", 40, |link| !link["dhcp"]["link_local"].is_null());
    let own = link(&state)["dhcp"]["link_local"].as_str().unwrap().to_owned();
    assert!(has_address(link(&state), &format!("{own}/16")), "{state}");
    run(Command::new("ip").args(["address", "add", "169.254.200.1/16", "dev", TAP]));
    ping(&own);
    // A server is back.
    let _server = kea(&folder.0, 30, 50, 60);
    until(&serve, "bound again", 80, |link| {
        is_bound(link) && link["dhcp"]["link_local"].is_null() && !has_address(link, &format!("{own}/16"))
    });
    assert!(serve.end().success());
}

#[test]
fn an_address_that_another_host_has_is_declined_to_kea() {
    if !wire() {
        return;
    }
    // Kea lends the first of its pool, and the kernel answers for it.
    run(Command::new("ip").args(["address", "add", "10.31.0.50/32", "dev", "lo"]));
    let folder = Folder::new("decline");
    let _server = kea(&folder.0, 300, 500, 600);
    let serve = host(&folder.0);
    let state = until(&serve, "bound", 60, is_bound);
    assert!(log(&folder.0).contains("DHCP4_DECLINE_LEASE"), "{}", log(&folder.0));
    let address = link(&state)["dhcp"]["address"].as_str().unwrap();
    assert!(address != "10.31.0.50/24" && has_address(link(&state), address), "{state}");
    ping(address);
    // While it is in use, somebody else takes it: it is defended once, and then given up.
    let taken = address.split('/').next().unwrap().to_owned();
    let card = link(&state)["hardware"].as_str().unwrap().to_owned();
    claim(&taken, &card);
    until(&serve, "elsewhere", 60, |link| is_bound(link) && !has_address(link, &format!("{taken}/24")));
    assert_eq!(log(&folder.0).matches("DHCP4_DECLINE_LEASE").count(), 2, "{}", log(&folder.0));
    assert!(serve.end().success());
}

/// ARP announcements of `address`, two seconds apart, by a card that is not `card` (RFC 5227 §2.3).
fn claim(address: &str, card: &str) {
    let script = "import socket,sys,time\n\
        other=bytes.fromhex('020000c0ffee'); assert other.hex(':')!=sys.argv[2]\n\
        ip=socket.inet_aton(sys.argv[1])\n\
        s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW); s.bind(('indhcp0',0))\n\
        for _ in range(3):\n\
        \x20 s.send(b'\\xff'*6+other+bytes.fromhex('08060001080006040001')+other+ip+bytes(6)+ip)\n\
        \x20 time.sleep(2)";
    run(Command::new("python3").args(["-c", script, address, card]));
}

#[test]
fn a_client_with_a_host_of_its_own_waits_for_its_address() {
    if !wire() {
        return;
    }
    let folder = Folder::new("private");
    let _server = dnsmasq(&folder.0, &["--dhcp-range=10.31.0.50,10.31.0.59,255.255.255.0,2m"]);
    let ping = ["ping", "10.31.0.1", "--link", LINK, "--count", "2"];
    let text = run(crate::common::inhost(&folder.0).args(ping));
    assert!(text.contains("2 answered"), "{text}");
    assert!(folder.0.join(".local/state/inhost/dhcp/indhcp0-lease").is_file());
}
