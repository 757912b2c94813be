//! The event decoder: however a stream is cut, its events are those that a decoder of whole
//! streams, written from the definition alone, finds in it.

use etch::wire::sse::{Decoder, Event, SseError};

use crate::fuzz::{cuts, fuzz, recorded_streams};

/// Small, so that inputs reach it.
const LIMIT: usize = 1 << 10;

type Events = (Vec<(String, String)>, Option<SseError>);

fn decode(pieces: &[&[u8]], bytes_max: usize) -> Events {
    let mut events = Vec::new();
    let mut decoder = Decoder::with_limit(bytes_max);
    let mut sink = |event: Event<'_>| {
        events.push((event.name.to_owned(), event.data.to_owned()));
        Ok::<(), SseError>(())
    };
    let mut result = pieces.iter().try_for_each(|piece| decoder.push(piece, &mut sink));
    result = result.and_then(|()| decoder.finish(&mut sink));
    (events, result.err())
}

/// The lines of a whole stream; the last one may be unfinished.
fn lines(mut stream: &[u8]) -> Vec<&[u8]> {
    stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let mut lines = Vec::new();
    while let Some(end) = stream.iter().position(|byte| b"\r\n".contains(byte)) {
        lines.push(&stream[..end]);
        let width = if stream[end..].starts_with(b"\r\n") { 2 } else { 1 };
        stream = &stream[end + width..];
    }
    lines.push(stream);
    lines
}

fn decode_whole(stream: &[u8]) -> Events {
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), None::<Vec<&str>>);
    // The end stands for the blank line that may be missing.
    for line in lines(stream).into_iter().chain([&b""[..]]) {
        if line.is_empty() {
            let name = std::mem::take(&mut name);
            events.extend(data.take().map(|data| (name, data.join("\n"))));
            continue;
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if field == b"event" {
            name = String::from_utf8_lossy(value).into_owned();
        }
        if field == b"error" {
            name = "error".to_owned();
        }
        if field == b"data" || field == b"error" {
            match std::str::from_utf8(value) {
                Ok(value) => data.get_or_insert_default().push(value),
                Err(_) => return (events, Some(SseError::InvalidUtf8)),
            }
        }
    }
    (events, None)
}

#[test]
fn an_event_stream() {
    let tokens = [
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "\r\n\r\n",
        "data:",
        "data: ",
        "data",
        "event:",
        "event: e\n",
        "error: ",
        ":",
        ": ping\n\n",
        "id: 1\n",
        "retry: 1\n",
        " ",
        "\u{feff}",
        "é",
        "🦀",
        "[DONE]",
        "{}",
    ];
    fuzz("an event stream", recorded_streams("streams"), &tokens, |bytes| {
        let whole = decode(&[bytes], 1 << 20);
        assert_eq!(whole, decode_whole(bytes));
        let limited = decode(&[bytes], LIMIT);
        for pieces in cuts(bytes) {
            assert_eq!(decode(&pieces, 1 << 20), whole);
            assert_eq!(decode(&pieces, LIMIT), limited);
        }
        assert!(whole.0.starts_with(&limited.0));
        let held: usize = limited.0.iter().map(|(name, data)| name.len().max(data.len())).sum();
        assert!(held <= bytes.len() * 3, "{held}");
        let names = whole.0.iter().filter(|(name, _)| !name.is_empty()).count();
        (whole.0.len().min(64), names.min(16), whole.1.is_some(), limited.1.is_some())
    });
}
