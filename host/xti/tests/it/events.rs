//! `TLOOK` in every place that the standard names, in one table: the call, the event, and what the call says.

use inhost_socket::Host;
use inhost_xti::{Error, Look, Provider, SendFlags, TransportEndpoint};

use crate::common::{client, connected, here, host, run, server, settle};

/// An endpoint whose other end has aborted their connection.
async fn aborted(host: &Host) -> TransportEndpoint {
    let (near, far) = connected(host).await;
    near.snddis(None).unwrap();
    settle(host).await;
    far
}

/// An endpoint whose other end has released.
async fn released(host: &Host) -> TransportEndpoint {
    let (near, far) = connected(host).await;
    near.sndrel().unwrap();
    settle(host).await;
    far
}

/// An endpoint that has one indication outstanding; and another caller where `has_second`.
async fn indicated(
    host: &Host,
    has_second: bool,
) -> (TransportEndpoint, TransportEndpoint, inhost_xti::Indication) {
    let (far, near) = (server(host, 700, 4), client(host));
    near.connect(here(700)).await.unwrap();
    let call = far.listen().await.unwrap();
    if has_second {
        client(host).connect(here(700)).await.unwrap();
        settle(host).await;
    }
    (far, near, call)
}

#[test]
fn each_call_is_stopped_by_the_events_that_the_standard_names() {
    let host = host();
    run(&host, async {
        let mut found = Vec::new();
        let mut say = |call: &'static str, why: Option<Error>| {
            if let Some(Error::Look(event)) = why {
                found.push(format!("{call} {event}"));
            } else {
                found.push(format!("{call} {why:?}"));
            }
        };
        let (far, near, call) = indicated(&host, true).await;
        say("t_accept", far.accept(&far, call.sequence).err());
        drop((far, near));
        let (far, near, call) = indicated(&host, false).await;
        near.snddis(None).unwrap();
        settle(&host).await;
        say("t_accept", far.accept(&far, call.sequence).err());
        say("t_listen", far.try_listen().err());
        say("t_snddis", far.snddis(Some(call.sequence)).err());
        drop(far);
        let far = server(&host, 700, 4);
        client(&host).connect(here(700)).await.unwrap();
        say("t_connect", far.connect(here(1)).await.err());
        say("t_unbind", far.unbind().err());
        drop(far);
        let near = client(&host);
        say("t_connect", near.connect(here(1)).await.err());
        say("t_rcvconnect", near.rcvconnect().await.err());
        let far = aborted(&host).await;
        say("t_rcv", far.try_rcv(&mut [0; 8]).err());
        say("t_snd", far.try_snd(b"?", SendFlags::default()).err());
        say("t_sndrel", far.sndrel().err());
        say("t_rcvrel", far.rcvrel().err());
        say("t_snddis", far.snddis(None).err());
        drop(far);
        let far = released(&host).await;
        say("t_rcv", far.try_rcv(&mut [0; 8]).err());
        drop(far);
        let datagrams = TransportEndpoint::open(&host, Provider::Udp);
        datagrams.bind(Some(here(53)), 0).unwrap();
        datagrams.sndudata(b"?", here(4444)).await.unwrap();
        settle(&host).await;
        say("t_rcvudata", datagrams.try_rcvudata(&mut [0; 8]).err());
        say("t_sndudata", datagrams.try_sndudata(b"?", here(53)).err());
        datagrams.rcvuderr().unwrap();
        datagrams.sndudata(b"!", here(53)).await.unwrap();
        settle(&host).await;
        say("t_unbind", datagrams.unbind().err());
        let expected = [
            "t_accept T_LISTEN",
            "t_accept T_DISCONNECT",
            "t_listen T_DISCONNECT",
            "t_snddis T_DISCONNECT",
            "t_connect T_LISTEN",
            "t_unbind T_LISTEN",
            "t_connect T_DISCONNECT",
            "t_rcvconnect T_DISCONNECT",
            "t_rcv T_DISCONNECT",
            "t_snd T_DISCONNECT",
            "t_sndrel T_DISCONNECT",
            "t_rcvrel T_DISCONNECT",
            "t_snddis T_DISCONNECT",
            "t_rcv T_ORDREL",
            "t_rcvudata T_UDERR",
            "t_sndudata T_UDERR",
            "t_unbind T_DATA",
        ];
        assert_eq!(found, expected);
        assert_eq!(Error::Look(Look::Listen).to_string(), "T_LISTEN has to be received first (TLOOK)");
    });
}
