//! Bodies as they are sent and received.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::response::{Response, ResponseBody};
use crate::watch::{Phase, Watch};

/// Bytes of one piece of a response. hyper may copy a piece.
const PIECE_BYTES: usize = 16 << 10;

/// A response's body on its way. Dropped, the connection waits for the next request.
pub(crate) struct Outgoing {
    body: ResponseBody,
    watch: Rc<Watch>,
}

impl Outgoing {
    pub(crate) fn new(body: ResponseBody, watch: Rc<Watch>) -> Outgoing {
        Outgoing { body, watch }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let is_ending = self.watch.is_ending();
        let piece = match &mut self.body {
            ResponseBody::Bytes(rest) if rest.is_empty() => Poll::Ready(None),
            ResponseBody::Bytes(rest) => Poll::Ready(Some(rest.split_to(rest.len().min(PIECE_BYTES)))),
            ResponseBody::Stream(_) if is_ending => Poll::Ready(None),
            ResponseBody::Stream(stream) => stream.as_mut().poll_next(context),
        };
        piece.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
    fn is_end_stream(&self) -> bool {
        matches!(&self.body, ResponseBody::Bytes(rest) if rest.is_empty())
    }
    fn size_hint(&self) -> SizeHint {
        match &self.body {
            ResponseBody::Bytes(rest) => SizeHint::with_exact(rest.len() as u64),
            ResponseBody::Stream(_) => SizeHint::default(),
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.watch.enter(Phase::Idle);
    }
}

/// A request's body, up to `limit` bytes.
pub(crate) async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, Response> {
    let too_large = || {
        let detail = format!("the body may have {limit} bytes");
        Response::problem(StatusCode::PAYLOAD_TOO_LARGE, &detail)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut whole = BytesMut::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let broken = |_| Response::problem(StatusCode::BAD_REQUEST, "the body is not whole");
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if whole.len() + data.len() > limit {
            return Err(too_large());
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}
