//! Server-sent events of an HTTP answer.

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use sse_stream::SseStream;

use super::ModelError;
use crate::http::transport_error;

/// The data of every event. Comments and empty events are skipped; an event that the end of the stream cuts is given
/// too, so that its reader decides.
pub(super) fn data(response: reqwest::Response) -> impl Stream<Item = Result<String, ModelError>> {
    let bytes = response.bytes_stream().map(|part| part.map_err(|error| transport_error(&error)));
    // An event ends with an empty line; servers that close right after their last line mean it no less.
    let closed = bytes.chain(stream::once(async { Ok(Bytes::from_static(b"\n\n")) }));
    SseStream::from_bytes_stream(Box::pin(closed)).filter_map(async |event| match event {
        Ok(event) => event.data.filter(|data| !data.trim().is_empty()).map(Ok),
        Err(error) => Some(Err(broken(&error))),
    })
}

/// Where the connection broke, what was received decides what it means.
fn broken(error: &sse_stream::Error) -> ModelError {
    tracing::debug!(%error, "the stream broke off");
    ModelError::Cut { received: 0 }
}
