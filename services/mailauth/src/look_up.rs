//! Look-ups through the host's own resolver. No socket of the operating system is involved: [`Names`] has none.

use crate::check::Plan;
use crate::dns::{Answer, Kind, Query};
use futures_lite::future;
use inhost_names::proto::op::ResponseCode;
use inhost_names::proto::rr::{Name, RData, RecordType};
use inhost_names::{AnswerError, Failed, Names, RecordsRequest};
use inhost_socket::Host;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

/// Look-ups of one message at the same time.
const AT_ONCE: usize = 8;

/// Looks up what `plan` needs, until it needs nothing more or its time is over. It never fails: what has no answer is a
/// temporary error of the check that needed it.
pub async fn look_up(plan: &mut Plan, names: &Names, host: &Host) {
    let limit = plan.time_limit();
    let rounds = async {
        loop {
            let missing = plan.missing();
            if missing.is_empty() {
                return;
            }
            for some in missing.chunks(AT_ONCE) {
                for (query, answer) in some.iter().zip(all(some, names).await) {
                    plan.answer(query.clone(), answer);
                }
            }
        }
    };
    let is_late = host.timeout(limit, rounds).await.is_err();
    if is_late {
        plan.give_up();
    }
}

/// The answers to `queries`, in their order.
async fn all(queries: &[Query], names: &Names) -> Vec<Answer> {
    let mut waiting: Vec<Pin<Box<dyn Future<Output = Answer> + '_>>> = Vec::new();
    waiting
        .extend(queries.iter().map(|query| Box::pin(one(query, names)) as Pin<Box<dyn Future<Output = _>>>));
    let mut answers: Vec<Option<Answer>> = vec![None; queries.len()];
    future::poll_fn(|context| {
        for (future, answer) in waiting.iter_mut().zip(&mut answers) {
            if answer.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *answer = Some(ready);
            }
        }
        if answers.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}

async fn one(query: &Query, names: &Names) -> Answer {
    // Labels may hold any octet, and the resolver reads a name as people write it.
    let Ok(mut name) = Name::from_labels(query.name.split('.').map(str::as_bytes)) else {
        return Answer::NoSuchName;
    };
    // A stranger's record must not have this host ask its own link (RFC 6762 §22.1: such names are not in the DNS).
    if query.name == "local" || query.name.ends_with(".local") {
        return Answer::NoSuchName;
    }
    name.set_fqdn(true);
    let kind = match query.kind {
        Kind::Txt => RecordType::TXT,
        Kind::A => RecordType::A,
        Kind::Aaaa => RecordType::AAAA,
        Kind::Mx => RecordType::MX,
        Kind::Ptr => RecordType::PTR,
    };
    let mut request = RecordsRequest::new(&name.to_ascii());
    request.kinds = vec![kind];
    let Some(found) = names.records(&request).await.ok().and_then(|mut results| results.pop()) else {
        return Answer::NoSuchName;
    };
    let answer = match found.result {
        Ok(answer) if answer.is_no_such_name() => return Answer::NoSuchName,
        Ok(answer) => answer,
        Err(Failed::AnswerError(AnswerError::Code(ResponseCode::NXDomain)) | Failed::NotAskable) => {
            return Answer::NoSuchName;
        }
        Err(_) => return Answer::Failed,
    };
    let bare = |name: &Name| name.to_ascii().trim_end_matches('.').to_ascii_lowercase();
    let data = answer.wanted(kind).map(|record| &record.data);
    match query.kind {
        Kind::Txt => Answer::Texts(
            data.filter_map(|data| match data {
                RData::TXT(text) => Some(text.txt_data.concat()),
                _ => None,
            })
            .collect(),
        ),
        Kind::A | Kind::Aaaa => Answer::Addresses(data.filter_map(RData::ip_addr).collect()),
        Kind::Ptr => Answer::Names(
            data.filter_map(|data| match data {
                RData::PTR(name) => Some(bare(&name.0)),
                _ => None,
            })
            .collect(),
        ),
        Kind::Mx => {
            let exchange = |data: &RData| match data {
                RData::MX(mx) => Some((mx.preference, bare(&mx.exchange))),
                _ => None,
            };
            let mut exchanges: Vec<_> = data.filter_map(exchange).collect();
            exchanges.sort();
            Answer::Names(exchanges.into_iter().map(|(_, name)| name).collect())
        }
    }
}
