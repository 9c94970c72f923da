//! The choices of the `linux` profile, each of which can be undone alone, to see what it is for and what guards it.

use inhost_stack::{IpConfig, ListenOptions, StackConfig, UdpOptions};
use inhost_tcp::{Config, Policy};

/// Initial options of our host.
pub struct Setup<'a> {
    /// The host.
    pub config: &'a mut StackConfig,
    /// Its listeners.
    pub listen: &'a mut ListenOptions,
    /// Its datagram sockets.
    pub datagrams: &'a mut UdpOptions,
}

/// One choice of the profile.
pub struct Choice {
    /// Its name.
    pub name: &'static str,
    undo: fn(Setup<'_>),
}

impl Choice {
    /// The choice of this name.
    pub fn named(name: &str) -> Option<&'static Choice> {
        ALL.iter().find(|choice| choice.name == name)
    }
    /// Sets it as the `rfc` profile has it.
    pub fn undo(&self, setup: Setup<'_>) {
        (self.undo)(setup);
    }
}

macro_rules! of_tcp {
    (config $($field:ident)* ; policy $($choice:ident)*) => {
        /// Settings of the profile beside TCP's policy.
        pub const OF_CONFIG: &[&str] = &[$(stringify!($field)),*];
        /// The choices of TCP's policy.
        pub const OF_POLICY: &[&str] = &[$(stringify!($choice)),*];
        /// All of them.
        pub static ALL: &[Choice] = &[
            $(Choice {
                name: stringify!($field),
                undo: |setup| setup.config.tcp.$field = Config::rfc().$field,
            },)*
            $(Choice {
                name: stringify!($choice),
                undo: |setup| setup.config.tcp.policy.$choice = Policy::rfc().$choice,
            },)*
            Choice { name: "gives_out_reset", undo: |setup| setup.listen.gives_out_reset = false },
            Choice {
                name: "fragments_at_source",
                undo: |setup| setup.datagrams.fragments_at_source = false,
            },
            Choice {
                name: "soft_errors_on_request",
                undo: |setup| setup.datagrams.soft_errors_on_request = false,
            },
            Choice {
                name: "errors_each",
                undo: |setup| setup.config.ip.errors_each = IpConfig::default().errors_each,
            },
            Choice {
                name: "errors_have_precedence",
                undo: |setup| setup.config.ip.errors_have_precedence = false,
            },
        ];
    };
}

of_tcp! {
    config
        send_buffer_limit_bytes not_sent_low_water_bytes send_buffer_initial_bytes
        receive_buffer_limit_bytes receive_buffer_initial_bytes user_timeout syn_retries
        syn_answer_retries syn_linear_timeouts max_retransmission_timeout recovery_timer_slack
        timestamps_required rto_restart congestion pacing path_mtu_probing window_growth_bytes
        quick_acknowledgments
    ;
    policy
        pushes_writes_and_bursts congestion_window_grows_on_sack congestion_window_is_blamed_first
        partial_acks_recut_segments fills_window_behind_full_segments window_probes_are_empty
        rtt_sample_for_each_ack soft_errors_name_timeouts icmp_reverts_back_off adaptive_delayed_acks
        same_sequence_only_widens_window ece_needs_data_in_flight zero_urgent_pointer_counts
        segments_need_ack_flag unacknowledged_range_is_acceptable pure_acks_pass_paws
        challenge_interval unread_data_has_no_connection acknowledges_crossing_answer
        syn_ack_data_is_dropped bad_syn_ack_retry soft_errors_end_handshakes
        received_data_survives_reset reset_at_fin_is_valid
}
