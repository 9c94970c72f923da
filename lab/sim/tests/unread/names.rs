//! The forwarder of names, over TCP.

use inhost_common::Callers;
use inhost_names::Hosts;
use inhost_names::forward::{ForwardConfig, serve};
use inhost_sim::{Node, ProgramResult};

use super::{assert_little, held};

const PORT: u16 = 53;

async fn forwarder(node: Node) -> ProgramResult {
    let hosts = Hosts::parse("10.9.9.9 a.example\n");
    let _forwarding = serve(&node, PORT, ForwardConfig::default(), hosts, Callers::default(), [7; 32])?;
    std::future::pending::<()>().await;
    Ok(())
}

#[test]
fn questions_over_tcp() {
    // What the table answers, and what nobody does.
    let known =
        b"\x00\x1b\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01";
    let unknown =
        b"\x00\x1b\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01b\x07example\x00\x00\x10\x00\x01";
    for (name, question) in [("known", &known[..]), ("unknown", &unknown[..])] {
        let held = held(PORT, forwarder, async |_, _| Ok(None), question);
        assert_little(&format!("names, {name}"), held);
    }
}
