//! A password on its way to a verdict.

use std::mem;
use std::task::{Context, Poll};

use inhost_base::Instant;

use crate::{Attempt, LocalFuture, Permit, Refusal};

/// A name and a password on their way to a verdict, for drivers that are polled. One of the caller's wrong passwords is
/// reserved before the password is checked, so that many checks at once share the limit.
pub struct LogOn<T> {
    user: String,
    step: Step<T>,
}

enum Step<T> {
    /// The caller's other passwords come first.
    Queued(String),
    /// The verdict is awaited.
    Checking(Attempt, LocalFuture<T>),
    Done,
}

impl<T> LogOn<T> {
    /// Nothing is checked yet.
    pub fn new(user: String, password: String) -> LogOn<T> {
        LogOn { user, step: Step::Queued(password) }
    }
    /// The name.
    pub fn user(&self) -> &str {
        &self.user
    }
    /// Goes on; ready with the verdict of `check` and the attempt, which is to be [denied](Attempt::denied) if the password
    /// was wrong, or with the reason why nothing is checked. It is not polled after that.
    pub fn poll(
        &mut self,
        permit: &Permit,
        check: impl FnOnce(String, String) -> LocalFuture<T>,
        now: Instant,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(Attempt, T), Refusal>> {
        if let Step::Queued(password) = &mut self.step {
            let Poll::Ready(attempt) = permit.poll_attempt(cx, now) else { return Poll::Pending };
            match attempt {
                Ok(attempt) => {
                    let verdict = check(self.user.clone(), mem::take(password));
                    self.step = Step::Checking(attempt, verdict);
                }
                Err(refusal) => {
                    self.step = Step::Done;
                    return Poll::Ready(Err(refusal));
                }
            }
        }
        match mem::replace(&mut self.step, Step::Done) {
            Step::Checking(attempt, mut verdict) => match verdict.as_mut().poll(cx) {
                Poll::Ready(verdict) => Poll::Ready(Ok((attempt, verdict))),
                Poll::Pending => {
                    self.step = Step::Checking(attempt, verdict);
                    Poll::Pending
                }
            },
            Step::Queued(_) | Step::Done => Poll::Pending,
        }
    }
}
