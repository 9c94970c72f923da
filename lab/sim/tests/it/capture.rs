//! What a capture says besides frames: the names of hosts, faults and lost frames.

use std::path::Path;
use std::process::Command;

use inhost_interop::{left_out, run};
use inhost_sim::{Capture, Duration, LinkConfig, Loss, Node, ProgramResult, Simulation};
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::Block;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
use pcap_file::pcapng::blocks::name_resolution::Record;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn serve(node: Node) -> ProgramResult {
    let listener = node.bind(7)?;
    loop {
        let mut stream = listener.accept().await?;
        node.spawn(async move { while stream.read_u8().await.is_ok() {} }).detach();
    }
}

/// A run with a loss, a partition, a crash and a restart, captured in `file`.
fn run_into(file: &Path) {
    let mut simulation = Simulation::new(1);
    // The first hosts are named before somebody watches, the others after.
    simulation.set_link(LinkConfig { loss: Loss::EveryNth(6), ..LinkConfig::default() });
    simulation.host("server", serve);
    simulation.network().watch(Capture::create(file).unwrap());
    simulation.set_link(LinkConfig::default());
    simulation.client("client", async |node| {
        for _ in 0..5 {
            if let Ok(mut stream) = node.dial("server", 7).await {
                let _ = stream.write_u8(1).await;
                node.sleep(Duration::from_secs(1)).await;
            }
        }
        Ok(())
    });
    simulation.partition(&["server"], Duration::from_millis(500)..Duration::from_millis(1500));
    simulation.crash("server", Duration::from_secs(2));
    simulation.restart("server", Duration::from_millis(2500));
    simulation.run().unwrap();
}

/// What a capture says in words.
#[derive(Default)]
struct Words {
    interfaces: Vec<String>,
    names: Vec<(Vec<u8>, String)>,
    comments: Vec<String>,
    last: Vec<String>,
}

fn words(file: &Path) -> Words {
    let mut reader = PcapNgReader::new(std::fs::File::open(file).unwrap()).unwrap();
    let mut words = Words::default();
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(block) => {
                let name = block.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                });
                words.interfaces.extend(name);
            }
            Block::NameResolution(block) => {
                for record in &block.records {
                    let (address, names) = match record {
                        Record::Ipv4(record) => (&record.ip_addr, &record.names),
                        Record::Ipv6(record) => (&record.ip_addr, &record.names),
                        _ => continue,
                    };
                    words.names.push((address.to_vec(), names[0].to_string()));
                }
            }
            Block::EnhancedPacket(block) => {
                for option in &block.options {
                    if let EnhancedPacketOption::Comment(comment) = option {
                        words.comments.extend(comment.lines().map(str::to_owned));
                    }
                }
            }
            Block::InterfaceStatistics(block) => {
                for option in &block.options {
                    if let InterfaceStatisticsOption::Comment(comment) = option {
                        words.last.extend(comment.lines().map(str::to_owned));
                    }
                }
            }
            _ => {}
        }
    }
    words
}

#[test]
fn hosts_have_their_names_and_faults_their_comments() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.pcapng");
    run_into(&file);
    let Words { interfaces, names, comments, last } = words(&file);
    assert_eq!(interfaces, ["server", "client"]);
    assert!(names.contains(&(vec![10, 0, 0, 1], "server".to_owned())), "{names:?}");
    assert!(names.contains(&(vec![10, 0, 0, 2], "client".to_owned())), "{names:?}");
    assert!(names.iter().any(|(address, name)| address.len() == 16 && name == "server"), "{names:?}");
    let has = |wanted: &str| comments.iter().any(|line| line == wanted);
    assert!(has("@1500000000 network - - partition: server cut off from all others"), "{comments:#?}");
    assert!(has("@2500000000 network - - link 0 of server: mended"), "{comments:#?}");
    assert!(has("@3000000000 server - - crashed"), "{comments:#?}");
    assert!(has("@3500000000 server - - restarted"), "{comments:#?}");
    let count = |words: &str| comments.iter().filter(|line| line.ends_with(words)).count();
    assert!(count("lost on link 0 of server: by the line") > 0, "{comments:#?}");
    assert!(count("lost on link 0 of server: the link is cut") > 0, "{comments:#?}");
    assert!(count("lost on link 0 of server: the host has no power") > 0, "{comments:#?}");
    assert!(last.is_empty(), "{last:#?}");
}

#[test]
fn a_run_that_fails_says_why_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.pcapng");
    let mut simulation = Simulation::new(1);
    simulation.network().watch(Capture::create(&file).unwrap());
    simulation.host("server", serve);
    simulation.client("client", async |node| {
        node.dial("server", 7).await?;
        Err("not what was to come".into())
    });
    let why = simulation.run().unwrap_err();
    drop(simulation);
    let last = words(&file).last.join(" ");
    assert!(last.contains("the run failed: client: its program ended at"), "{last}");
    assert!(last.contains("not what was to come") && why.why.contains("not what was to come"), "{last}");
}

#[test]
fn wireshark_shows_names_and_comments() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return left_out("tshark missing; lab/interop/peers as root installs it");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.pcapng");
    run_into(&file);
    let tshark = |filter: &str, fields: &[&str]| {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(&file).args(["-Nn", "-Y", filter, "-T", "fields"]);
        fields.iter().for_each(|field| {
            command.args(["-e", field]);
        });
        run(&mut command)
    };
    let first = tshark("tcp.flags.syn == 1 && tcp.dstport == 7", &["frame.interface_name", "ip.dst_host"]);
    assert_eq!(first.lines().next(), Some("client\tserver"), "{first}");
    let crashed = tshark("frame.comment contains \"server - - crashed\"", &["frame.number"]);
    assert_eq!(crashed.lines().count(), 1, "{crashed}");
    let lost = tshark("frame.comment contains \"by the line\"", &["frame.number"]);
    assert!(lost.lines().count() > 0);
}
