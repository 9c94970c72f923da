//! What is noted about recipients that were tried, and the reports about them.

use bytes::Bytes;
use tracing::info;

use super::config::SenderConfig;
use super::handle::Sender;
use super::report::{Report, ReportKind, Reported};
use crate::codec::Notify;
use crate::queue::{Fate, Item, NewMessage, Reason, Settlement, Stored};

/// Why a recipient does not have the message.
#[derive(Clone, Debug)]
pub(super) struct Setback {
    pub reason: Reason,
    /// Whether no attempt will succeed.
    pub is_final: bool,
}

/// A recipient that was tried, and what came of it.
pub(super) type Tried<'a> = (&'a Item, Result<(), Setback>);

/// Octets of a message that are read for a report.
const RETURNED_BYTES: usize = (64 << 10) + 1;
/// When a sender is told that says nothing about it (RFC 3461 §4.1).
const FAILURE_AND_DELAY: Notify = Notify { success: false, failure: true, delay: true };

impl Sender {
    /// What is noted about recipients of a message, with the reports about it. `due_s` is when those that wait are tried
    /// again, where the destination says it.
    pub(super) async fn outcome(
        &self,
        stored: &Stored,
        fates: Vec<Tried<'_>>,
        success: Option<ReportKind>,
        due_s: Option<u64>,
        config: &SenderConfig,
    ) -> Settlement {
        let now_s = self.now_s();
        let (mut settlement, mut succeeded, mut failed, mut delayed) =
            (Settlement::default(), Vec::new(), Vec::new(), Vec::new());
        let until_s = stored.expires_s;
        for (item, fate) in fates {
            let notify = item.recipient.notify;
            let reported = |reason| Reported { recipient: item.recipient.clone(), reason };
            let fate = match fate {
                Ok(()) => {
                    if notify.is_some_and(|notify| notify.success) {
                        succeeded.push(reported(None));
                    }
                    Fate::Done
                }
                Err(Setback { reason, is_final }) if is_final || now_s >= until_s => {
                    info!(target: "mail", to = %item.recipient.mailbox, "failed: {reason}");
                    if notify.unwrap_or(FAILURE_AND_DELAY).failure {
                        failed.push(reported(Some(reason.clone())));
                    }
                    Fate::Failed(reason)
                }
                Err(Setback { reason, .. }) => {
                    let schedule = &config.schedule;
                    let due_s =
                        due_s.unwrap_or_else(|| now_s + schedule.wait_s(item.attempts.saturating_add(1)));
                    let is_late = schedule.warning_s > 0
                        && now_s.saturating_sub(stored.arrived_s) >= schedule.warning_s
                        && notify.unwrap_or(FAILURE_AND_DELAY).delay;
                    if is_late && !item.is_warned {
                        delayed.push(reported(Some(reason.clone())));
                    }
                    // The last attempt is at the end, not long after it.
                    Fate::Later {
                        due_s: due_s.min(until_s.max(now_s + 1)),
                        reason,
                        is_warned: item.is_warned || is_late,
                    }
                }
            };
            settlement.fates.push((item.id, fate));
        }
        let reports = [
            (ReportKind::Failed, failed),
            (ReportKind::Delayed { until_s }, delayed),
            (
                success.unwrap_or(ReportKind::Delivered),
                if success.is_some() { succeeded } else { Vec::new() },
            ),
        ];
        for (kind, recipients) in reports {
            if !recipients.is_empty() {
                settlement.reports.extend(self.report(kind, stored, recipients, config).await);
            }
        }
        settlement
    }

    async fn report(
        &self,
        kind: ReportKind,
        stored: &Stored,
        recipients: Vec<Reported>,
        config: &SenderConfig,
    ) -> Option<NewMessage> {
        let body = stored.body.clone();
        let read = move || body.read(RETURNED_BYTES);
        let text = match stored.body.is_in_memory() {
            true => read(),
            false => blocking::unblock(read).await,
        };
        let text: Bytes = text.unwrap_or_default();
        self.reports.set(self.reports.get() + 1);
        let report = Report {
            host: &config.host_name,
            kind,
            mail: &stored.mail,
            text: &text,
            arrived_s: stored.arrived_s,
            recipients,
            number: self.reports.get(),
        };
        let now_s = self.now_s();
        report.message(now_s, now_s + config.schedule.expires_s)
    }
}
