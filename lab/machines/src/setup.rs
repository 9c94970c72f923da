//! A setup as a value: which machines, which link, which program.

use serde::{Deserialize, Serialize};

/// One experiment's setup, as the runner reads it from TOML.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The machine that is measured.
    pub machine: Machine,
    /// The link between it and its peer.
    pub link: Link,
    /// The program on both.
    pub program: Program,
    /// Everything else; all of it has defaults.
    #[serde(default)]
    pub parameters: Parameters,
}

/// A machine of then.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Machine {
    /// A host whose work takes no time.
    Ideal {},
    /// MIT's IBM PC: 8088 at 4.77 MHz, with the remote login of 1982 (MIT table 6-1).
    IbmPc {},
    /// The same with a scheduler that calls procedures instead of tasks (MIT §4.2.4).
    IbmPcWithProcedures {},
    /// DEC 3000 AXP Model 500 with OSF/1 1.2 and an FDDI adapter (DEC).
    Alpha {},
    /// The same before the changes to UDP (DEC table 1): datagrams are worked on as soon as they come.
    AlphaBefore {},
    /// PDP-11/45 with Unix behind MIT's packet concentrator.
    Csr {},
    /// VAX-11/750 with Unix behind MIT's packet concentrator.
    Comet {},
    /// DEC System-20 with Tops-20 behind MIT's packet concentrator.
    Xx {},
    /// Multics, on the ARPANET behind MIT's packet concentrator.
    Multics {},
    /// Dell 310, an 80386 at 12.5 MHz with MD-DOS/IP (VPI).
    #[serde(rename = "dell-310")]
    Dell310 {},
    /// PS/2 Model 80 with MD-DOS/IP (VPI).
    Ps2 {},
    /// DECstation 5000 (VPI).
    #[serde(rename = "dec-5000")]
    Dec5000 {},
    /// Macintosh II whose program was slowed down (VPI).
    MacIiSlowed {},
    /// Macintosh II with Unix (VPI).
    MacIi {},
    /// DECstation 5000 whose program was slowed down (VPI).
    #[serde(rename = "dec-5000-slowed")]
    Dec5000Slowed {},
    /// DECstation 2100 (VPI).
    #[serde(rename = "dec-2100")]
    Dec2100 {},
    /// IBM 3033 with OS/MVS and the ACP, its I/O to the IMP included (UCLA).
    #[serde(rename = "ibm-3033")]
    Ibm3033 {},
    /// The same with the interface to the IMP in software.
    #[serde(rename = "ibm-3033-loopback")]
    Ibm3033Loopback {},
    /// The same without the checksum of TCP.
    #[serde(rename = "ibm-3033-loopback-without-checksum")]
    Ibm3033LoopbackWithoutChecksum {},
}

/// A link of then.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Link {
    /// A serial line with MIT's low level protocol, one start bit and one stop bit.
    Llp {
        /// Speed of the line; from 300 to 1,000,000. An IBM PC keeps up with 43,000 at most.
        bits_per_second: u64,
    },
    /// An 1822 interface to an IMP, with RFNMs and eight messages outstanding.
    Imp {
        /// Speed of the interface; from 1,000 to 10,000,000.
        bits_per_second: u64,
    },
    /// A serial line with SLIP.
    Slip {
        /// Speed of the line; from 300 to 1,000,000.
        bits_per_second: u64,
    },
    /// A token ring (IEEE 802.5) with packets of up to 1,500 bytes.
    TokenRing {
        /// Speed of the ring; from 1,000,000 to 100,000,000. Default: 4 Mbit/s.
        #[serde(default = "ring_speed")]
        bits_per_second: u64,
    },
    /// A serial line with LLP to MIT's packet concentrator, and the network behind it.
    Concentrator {
        /// Speed of the line; from 300 to 1,000,000.
        bits_per_second: u64,
        /// Packets for the line that the concentrator holds; from 1 to 1,000. Default: 16.
        #[serde(default = "packet_buffers")]
        packet_buffers: u32,
        /// The paper's bug: so many in a hundred of the packets that come while the line is busy are lost. Default: 0.
        #[serde(default)]
        lost_percent: u32,
    },
    /// Ethernet of 10 Mbit/s with collisions.
    Ethernet {},
    /// No link, for programs that need none.
    None {},
    /// FDDI of 100 Mbit/s with an MTU of 4,352 and a target rotation of 8 ms.
    Fddi {
        /// Digital's full-duplex mode, without a token. Default: no.
        #[serde(default)]
        full_duplex: bool,
        /// Rings, each with an adapter of the machine and a peer: 1 or 2. Default: 1.
        #[serde(default = "one")]
        rings: u8,
    },
}

fn one() -> u8 {
    1
}

fn one_of() -> u32 {
    1
}

fn yes() -> bool {
    true
}

fn ring_speed() -> u64 {
    4_000_000
}

fn packet_buffers() -> u32 {
    16
}

fn typed_bytes() -> u32 {
    222
}

fn screen_bytes() -> u32 {
    1536
}

/// What the hosts do.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Program {
    /// The peer echoes characters, and both print them (MIT §6.2.1 and §6.2.4). Gives `echo_ms`, the round trip.
    Echo {
        /// How often; from 1 to 10,000.
        count: u32,
        /// Characters that are echoed at once; from 1 to 65,536. Default: 1.
        #[serde(default = "one_of")]
        bytes: u32,
        /// Whether both ends print them. Default: yes.
        #[serde(default = "yes")]
        prints: bool,
        /// Whether one in 82 is a carriage return, which scrolls the screen. Default: no.
        #[serde(default)]
        scrolls: bool,
    },
    /// The peer sends a screenful of 1,966 bytes, which is printed (MIT §6.2.5). Gives `screenful_s`, from the first
    /// character to the last one, `screenful_by_clock_s` by a clock of 55 ms, `packets`, and `busy_s`: the processor's time for
    /// all packets of the screen, interrupts included (MIT table 6-3).
    Screenful {},
    /// The machine sends as fast as it can, and the peer takes the data. Gives `throughput_kbps`, `duration_s`, packets,
    /// acknowledgments, `first_window_ms` and `first_acknowledged_ms`, the times of the last segment before any was
    /// acknowledged and of its acknowledgment (VPI figure 13), and busy time and idle share of both; busy time also by kind of work, such as `sender_output_s`.
    Bulk {
        /// Bytes of a write; from 1 to 65,536.
        write_bytes: u32,
        /// Ends when the peer has taken so much; up to 2^30. Either this or `duration_s`.
        #[serde(default)]
        total_bytes: Option<u32>,
        /// Ends after so long; from 1 to 3,600.
        #[serde(default)]
        duration_s: Option<u32>,
        /// Whether the peer prints what it takes. Default: no.
        #[serde(default)]
        prints: bool,
        /// Connections at the same time, each with `total_bytes`; from 1 to 64. Default: 1.
        #[serde(default = "one_of")]
        sessions: u32,
    },
    /// A full-screen terminal session: the machine sends what was typed, and the peer answers with a screen (UCLA §3.2).
    /// Gives `cpu_s` of both, `tcp_cpu_s` of that, and `segments_to_peer` and `segments_from_peer`.
    FullScreen {
        /// How often; from 1 to 10,000.
        interactions: u32,
        /// Time between two of them; from 1 to 60,000.
        interval_ms: u32,
        /// Bytes typed. Default: 222.
        #[serde(default = "typed_bytes")]
        in_bytes: u32,
        /// Bytes of a screen. Default: 1,536.
        #[serde(default = "screen_bytes")]
        out_bytes: u32,
        /// Most bytes of a write of the peer; the screen in one write by default.
        #[serde(default)]
        write_bytes: Option<u32>,
    },
    /// The queue M/M/1/K, without hosts (VPI §4.4.1). Gives the closed form and a simulation: `blocking_closed_form_percent`,
    /// `blocking_percent`, `delay_mean_closed_form_ms`, `delay_mean_ms`, `delay_p50_ms`, `delay_p95_ms`, `delay_p99_ms`; and
    /// `places_for_1_percent`, the smallest K at which one packet in a hundred finds no place (figure 16).
    Queue {
        /// Packets that come in a second.
        arrivals_per_s: f64,
        /// Packets that can be served in a second.
        services_per_s: f64,
        /// K: places, the one in service included; from 1 to 1,000.
        places: u32,
        /// Packets that come in the simulation; from 1 to 10,000,000.
        packets: u32,
    },
    /// The machine sends UDP datagrams to each peer as fast as it can. Gives `send_kbps`, `receive_kbps`, `loss_percent`,
    /// `messages_sent`, `messages_received`, `frames_lost_in_cards`, `sender_idle_percent`, and `receive_least_kbps`, which is
    /// that of the peer that received least; with `total_bytes` also `duration_s`, from the first write until the last datagram
    /// was read that came.
    Blast {
        /// Bytes of a datagram; from 1 to 60,000.
        message_bytes: u32,
        /// How long; from 1 to 600,000. Either this or `total_bytes`.
        #[serde(default)]
        duration_ms: Option<u32>,
        /// Ends when each peer was sent so much; up to 2^30.
        #[serde(default)]
        total_bytes: Option<u32>,
    },
}

/// What has a default.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Parameters {
    /// The machine at the other end. Default: another one of the same kind.
    pub peer: Option<Machine>,
    /// The receive window that both hosts offer, in bytes. Default: that of the machine's paper. In a blast, the buffer of the
    /// receiver's socket; default 65,536.
    pub window_bytes: Option<u32>,
    /// The largest segment of both hosts, in bytes; from 64 to what the link takes. Default: that of the paper.
    pub segment_bytes: Option<u16>,
    /// The send buffer of both hosts, in bytes. Default: as large as the window, or as the machine's paper has it.
    pub send_buffer_bytes: Option<u32>,
    /// Programs on both hosts that only compute, beside the one that is measured; up to 16. The scheduler is System V's, which
    /// is assumed: VPI does not name it. Default: none.
    pub load: u32,
    /// Whether both hosts answer when one frame is left to be worked on, instead of none (MIT §7.1). Default: no.
    pub early_answer: bool,
}
