//! Edits against a model that tries every place: what is applied is what it says, and what is
//! refused leaves the file as it was.

use std::fs;

use etch::model::ResultStatus;
use etch::tool::Caller;
use etch::workspace::encoding::judge;
use serde_json::json;

use crate::fuzz::fuzz;
use crate::support::tool::Tree;

struct Edit {
    old: String,
    new: String,
    all: bool,
}

/// One byte of flags, three bytes an edit, then the content and the new texts, `0xfe` between
/// them. An old text is a piece of the content, as a model would see it, or the new text of the
/// next edit.
fn take_apart(input: &[u8]) -> Option<(Vec<u8>, Vec<Edit>, bool)> {
    let (&flags, rest) = input.split_first()?;
    let count = usize::from(flags & 1) + usize::from(flags >> 1 & 1) + 1;
    let places = rest.get(..3 * count)?;
    let mut texts = rest[3 * count..].split(|&byte| byte == 0xfe);
    let content = texts.next()?.to_vec();
    let texts: Vec<String> =
        texts.map(|text| String::from_utf8_lossy(text).into_owned()).take(count + 1).collect();
    let text = |idx: usize| texts.get(idx).cloned().unwrap_or_default();
    let edit = |(idx, place): (usize, &[u8])| {
        let start = usize::from(u16::from_be_bytes([place[0], place[1]])) % (content.len() + 1);
        let end = (start + usize::from(place[2] & 0x3f)).min(content.len());
        let piece = String::from_utf8_lossy(&content[start..end]);
        let old = match place[2] >> 6 {
            0 => piece.into_owned(),
            1 | 2 => piece.replace("\r\n", "\n"),
            _ => text(idx + 1),
        };
        Edit { old, new: text(idx), all: flags >> (2 + idx) & 1 == 1 }
    };
    let edits = places.chunks(3).enumerate().map(edit).collect();
    Some((content, edits, flags >> 7 == 1))
}

/// Where `old` stands, by a try at every place; a line feed may have a carriage return before it.
fn places(text: &[u8], old: &[u8], apart: bool) -> Vec<(usize, usize)> {
    let is_tolerant = !old.contains(&b'\r') && old.contains(&b'\n');
    let match_at = |start: usize| {
        let mut at = start;
        for &byte in old {
            if is_tolerant && byte == b'\n' && text[at..].starts_with(b"\r\n") {
                at += 1;
            }
            if text.get(at) != Some(&byte) {
                return None;
            }
            at += 1;
        }
        Some((start, at))
    };
    let mut found: Vec<(usize, usize)> = Vec::new();
    for place in (0..text.len()).filter_map(match_at) {
        match found.last() {
            // One that begins with the carriage return also begins after it.
            Some(last) if last.1 == place.1 => {}
            Some(last) if apart && place.0 < last.1 => {}
            _ => found.push(place),
        }
    }
    found
}

/// The new text with the line ends of the place where it goes.
fn adapted(text: &[u8], start: usize, edit: &Edit) -> Vec<u8> {
    let is_feed = |&at: &usize| text[at] == b'\n';
    let end = (start..text.len()).find(is_feed).or_else(|| (0..start).rev().find(is_feed));
    let is_crlf = end.is_some_and(|end| end > 0 && text[end - 1] == b'\r');
    match is_crlf && !edit.old.contains('\r') {
        true => edit.new.replace("\r\n", "\n").replace('\n', "\r\n").into_bytes(),
        false => edit.new.clone().into_bytes(),
    }
}

/// What the file should hold afterwards; `None` when nothing may be changed.
fn model(text: &[u8], edits: &[Edit]) -> Option<Vec<u8>> {
    let mut regions = Vec::new();
    for edit in edits {
        let found = places(text, edit.old.as_bytes(), edit.all);
        if edit.old.trim().is_empty() || found.is_empty() || (found.len() > 1 && !edit.all) {
            return None;
        }
        regions.extend(found.iter().map(|&(start, end)| (start, end, adapted(text, start, edit))));
    }
    regions.sort_by_key(|region| (region.0, region.1));
    if regions.windows(2).any(|pair| pair[1].0 < pair[0].1) {
        return None;
    }
    let (mut out, mut done) = (Vec::new(), 0);
    for (start, end, new) in regions {
        out.extend_from_slice(&text[done..start]);
        out.extend(new);
        done = end;
    }
    out.extend_from_slice(&text[done..]);
    (out != text).then_some(out)
}

#[test]
fn edits_of_a_file() {
    let source = &include_bytes!("../../src/cancel.rs")[..1_200];
    let crlf = String::from_utf8_lossy(source).replace('\n', "\r\n");
    let head = |flags: u8, places: &[[u8; 3]]| [&[flags][..], &places.concat()].concat();
    let seeds = [
        [&head(0, &[[0, 90, 0x20]])[..], source, b"\xfenew\ntext"].concat(),
        [
            &head(0b1_1111, &[[0, 9, 3], [0, 60, 0x49], [1, 2, 0x30]])[..],
            source,
            b"\xfea\xfeb\xfec",
        ]
        .concat(),
        [&head(1, &[[0, 90, 0x6f], [2, 90, 0x7f]])[..], crlf.as_bytes(), b"\xfex\ny\xfez\r\n"]
            .concat(),
        [&head(0b1000_0100, &[[0, 0, 0xc0]])[..], b"one two one\n\xfe1\xfeone"].concat(),
        [
            &head(0, &[[0, 0, 0xc0]])[..],
            b"Caf\xc3\xa9 \xe2\x80\x98x\xe2\x80\x99\n\xfe1\xfeCafe 'x'",
        ]
        .concat(),
        [&head(0, &[[0, 0, 5]])[..], b"n = 7\n# gar\xe7on\n\xfen = 8"].concat(),
        [&head(0, &[[0, 0, 3]])[..], b"aaaa\xfeb"].concat(),
    ];
    let tokens =
        ["\r\n", "\n", "\r", "\t", "  ", "\u{feff}", "é", "“", "a\n", "\n\n", "\u{fe}", "\0"];
    let tree = Tree::new();
    let path = tree.path("f");
    fuzz("edits of a file", seeds, &tokens, |input| {
        let Some((content, edits, dry_run)) = take_apart(input) else { return String::new() };
        fs::write(&path, &content).unwrap();
        let list: Vec<_> = edits
            .iter()
            .map(|edit| json!({"oldText": edit.old, "newText": edit.new, "replaceAll": edit.all}))
            .collect();
        let arguments = json!({"path": "f", "edits": list, "dryRun": dry_run}).to_string();
        let output = tree.call_by(Caller::Person, "edit", &arguments);
        let now = fs::read(&path).unwrap();
        let is_text = judge(&content).is_ok();
        match (output.status, model(&content, &edits)) {
            (ResultStatus::Ok, Some(_)) if dry_run => assert_eq!(now, content),
            (ResultStatus::Ok, Some(want)) => assert_eq!(now, want),
            (ResultStatus::Ok, None) => panic!("{}", output.text),
            (_, want) => {
                assert_eq!(now, content);
                assert!(want.is_none() || !is_text, "{}", output.text);
            }
        }
        let words = output.text.lines().next().unwrap_or_default();
        words.chars().filter(|c| !c.is_ascii_digit()).take(120).collect()
    });
}
