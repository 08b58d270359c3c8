//! Server-sent events of an HTTP answer.

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use sse_stream::SseStream;

use super::{MAX_ANSWER_BYTES, ModelError, too_long};
use crate::http::transport_error;

/// The data of every event. Comments and empty events are skipped; an event that the end of the stream cuts is given
/// too, so that its reader decides; a stream that does not end is ended here.
pub(super) fn data(response: reqwest::Response) -> impl Stream<Item = Result<String, ModelError>> {
    let mut received = 0;
    let bytes = response.bytes_stream().map(move |part| {
        let part = part.map_err(|error| ModelError::Http(transport_error(&error)))?;
        received += part.len();
        if received > MAX_ANSWER_BYTES { Err(too_long()) } else { Ok(part) }
    });
    // An event ends with an empty line; servers that close right after their last line mean it no less.
    let closed = bytes.chain(stream::once(async { Ok(Bytes::from_static(b"\n\n")) }));
    SseStream::from_bytes_stream(Box::pin(closed)).filter_map(async |event| match event {
        Ok(event) => event.data.filter(|data| !data.trim().is_empty()).map(Ok),
        Err(error) => Some(Err(broken(&error))),
    })
}

/// A limit that was hit is told; where the connection broke, what was received decides what it means.
fn broken(error: &sse_stream::Error) -> ModelError {
    if let sse_stream::Error::Body(cause) = error
        && let Some(limit @ ModelError::Garbage(_)) = cause.downcast_ref::<ModelError>()
    {
        return limit.clone();
    }
    tracing::debug!(%error, "the stream broke off");
    ModelError::Cut { received: 0 }
}
