//! The choices of the `linux` profile, each of which can be undone alone, to see what it is for and what guards it.

use inhost_stack::{IpConfig, ListenOptions, StackConfig, UdpOptions};
use inhost_tcp::Config;

/// What a host of our own begins with.
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
    ($($field:ident)*) => {
        /// The choices of TCP's configuration.
        pub const OF_TCP: &[&str] = &[$(stringify!($field)),*];
        /// All of them.
        pub static ALL: &[Choice] = &[
            $(Choice {
                name: stringify!($field),
                undo: |setup| setup.config.tcp.$field = Config::rfc().$field,
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
    send_buffer_limit_bytes not_sent_low_water_bytes send_buffer_initial_bytes receive_buffer_limit_bytes
    receive_buffer_initial_bytes quick_acknowledgments push user_timeout syn_retries syn_answer_retries
    syn_linear_timeouts max_retransmission_timeout empty_window_probes keeps_received_after_reset
    reset_after_end_is_closed soft_errors_name_timeouts soft_errors_end_handshakes unread_is_unknown
    answers_crossing_syn crossed_syn_retry drops_data_of_syn_answers needs_acknowledgment_flag
    resets_bad_handshakes accepts_what_is_not_acknowledged urgent_goes_with_data patience_from_retransmission
    halves_small_windows same_numbers_widen_windows aggregates_for_timeout challenge_interval
    syn_tells_whole_window doubled_window_updates measures_every_acknowledgment variation_falls_slowly
    recovery_timer_slack grows_out_of_order timestamps_required rto_restart congestion pacing path_mtu_probing
    window_counts_segments acknowledgments_move_cuts tail_probes_are_whole fills_windows errors_may_quote_next
    answer_must_be_echoed believes_resets_at_fin numbers_pass_rounded_edges old_acknowledgments_tell_nothing
    pure_acknowledgments_pass_paws small_last_states window_growth_bytes narrow_path_is_loss
    errors_revert_back_off repeated_syn_is_reduction resets_tell_marks marks_need_data_out
    zero_urgent_pointer_counts
}
