//! The small page that a browser shows when it comes back from signing in.

/// A whole HTTP response with a title and a sentence; both may come from outside.
pub fn response(status: &str, title: &str, text: &str) -> String {
    let (title, text) = (escape(title), escape(text));
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>etch: {title}</title>\
         <body style=\"font:16px sans-serif;margin:4em auto;max-width:34em\">\
         <h1>{title}</h1><p>{text}</p></body></html>\n"
    );
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n\
         Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{page}",
        page.len()
    )
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn text_from_outside_is_text() {
        let page = super::response("400 Bad Request", "No", "<script>'\"&\n");
        assert!(page.contains("<p>&lt;script&gt;&#39;&quot;&amp; </p>"), "{page}");
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"));
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
    }
}
