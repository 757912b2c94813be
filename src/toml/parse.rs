//! Statements and values; builds the tables and refuses what is given twice.

use crate::text;
use crate::toml::scalar::{parse_word, quoted};
use crate::toml::scan::Scanner;
use crate::toml::value::{Data, Document, Entry, Error, Made, Position, Table, Value};
use crate::toml::{BYTES_MAX, DEPTH_MAX};

/// Reads a whole file. The first thing that is wrong is the error.
pub fn parse(bytes: &[u8]) -> Result<Document, Error> {
    let text = decode(bytes)?;
    let mut parser = Parser { scan: Scanner::new(text), root: Table::default(), section: vec![] };
    parser.document()?;
    Ok(Document { root: parser.root })
}

fn decode(bytes: &[u8]) -> Result<&str, Error> {
    let fail = |line, column, message| Err(Error { at: Position { line, column }, message });
    if BYTES_MAX < bytes.len() {
        let limit = text::human_bytes(BYTES_MAX as u64);
        return fail(1, 1, format!("the file is larger than {limit}, which no settings need"));
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return fail(1, 1, "the file is UTF-16; save it as UTF-8".to_owned());
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(bad) => {
            let (good, rest) = bytes.split_at(bad.valid_up_to());
            let before = String::from_utf8_lossy(good);
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
            fail(
                line,
                column,
                format!("byte 0x{:02x} is not UTF-8; save the file as UTF-8", rest[0]),
            )
        }
    }
}

/// One part of a key, with where it stands.
struct KeyPart {
    name: String,
    at: Position,
}

struct Parser<'a> {
    scan: Scanner<'a>,
    root: Table,
    /// The path of the header that the following keys belong to.
    section: Vec<KeyPart>,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<(), Error> {
        loop {
            self.scan.skip_lines()?;
            match self.scan.peek() {
                None => return Ok(()),
                Some(b'[') => self.header()?,
                Some(_) => self.assignment()?,
            }
            self.end_of_statement()?;
        }
    }

    /// Only a comment may follow on the line.
    fn end_of_statement(&mut self) -> Result<(), Error> {
        self.scan.skip_blanks();
        self.scan.skip_comment()?;
        if self.scan.peek().is_none() || self.scan.eat_line_end() {
            return Ok(());
        }
        let found = self.found();
        self.scan.error(format!(
            "expected the end of the line, found {found}; give each setting its own line"
        ))
    }

    /// `[a.b]` or `[[a.b]]`.
    fn header(&mut self) -> Result<(), Error> {
        let at = self.scan.here();
        self.scan.advance(1);
        let is_list = self.scan.eat("[");
        let path = self.key()?;
        let close = if is_list { "]]" } else { "]" };
        if !self.scan.eat(close) {
            let found = self.found();
            return self.scan.error(format!(
                "expected '{close}' at the end of the table's name, found {found}"
            ));
        }
        open_section(&mut self.root, &path, at, is_list)?;
        self.section = path;
        Ok(())
    }

    /// `a.b = value`.
    fn assignment(&mut self) -> Result<(), Error> {
        let key = self.key()?;
        self.equals(&key)?;
        let value = self.value(self.section.len() + key.len())?;
        let mut table = &mut self.root;
        for part in &self.section {
            table = section_table(table, part)?;
        }
        assign(table, &key, value)
    }

    fn equals(&mut self, key: &[KeyPart]) -> Result<(), Error> {
        if !self.scan.eat("=") {
            let name = dotted(key);
            let found = self.found();
            let hint = match self.scan.peek() {
                Some(b':') => "; TOML sets a value by '=', not ':'",
                _ => "; a name with spaces or other signs stands in quotes",
            };
            return self.scan.error(format!("expected '=' after '{name}', found {found}{hint}"));
        }
        self.scan.skip_blanks();
        Ok(())
    }

    /// A key with its dots, and the blanks behind it.
    fn key(&mut self) -> Result<Vec<KeyPart>, Error> {
        let mut parts = Vec::new();
        loop {
            self.scan.skip_blanks();
            let at = self.scan.here();
            let name = match self.scan.peek() {
                Some(b'"' | b'\'') => {
                    let quotes =
                        ["\"\"\"", "'''"].into_iter().find(|q| self.scan.rest().starts_with(q));
                    if let Some(quotes) = quotes {
                        return self.scan.error(format!(
                            "a name may not stand in {quotes}; use one quote on each side"
                        ));
                    }
                    self.scan.string()?
                }
                _ => self.scan.bare_key().to_owned(),
            };
            if name.is_empty() && self.scan.here() == at {
                let found = self.found();
                let hint = match self.scan.rest().chars().next() {
                    Some(c) if !c.is_ascii() => "; a name with such letters stands in quotes",
                    _ => "",
                };
                return self.scan.error(format!("expected a name, found {found}{hint}"));
            }
            parts.push(KeyPart { name, at });
            if DEPTH_MAX < parts.len() {
                return self.too_deep();
            }
            self.scan.skip_blanks();
            if !self.scan.eat(".") {
                return Ok(parts);
            }
        }
    }

    fn too_deep<T>(&mut self) -> Result<T, Error> {
        self.scan.error(format!("nested more than {DEPTH_MAX} levels deep; flatten the settings"))
    }

    fn value(&mut self, depth: usize) -> Result<Value, Error> {
        if DEPTH_MAX < depth {
            return self.too_deep();
        }
        let at = self.scan.here();
        let data = match self.scan.peek() {
            Some(b'"' | b'\'') => Data::Text(self.scan.string()?),
            Some(b'[') => self.list(depth + 1)?,
            Some(b'{') => self.inline_table(depth + 1)?,
            None | Some(b'#' | b'\n' | b'\r' | b',' | b']' | b'}') => {
                return self.scan.error("the value is missing; write \"\" for an empty text");
            }
            Some(_) => self.bare()?,
        };
        Ok(Value { at, data })
    }

    fn list(&mut self, depth: usize) -> Result<Data, Error> {
        let start = self.scan.here();
        self.scan.advance(1);
        let mut items = Vec::new();
        loop {
            self.scan.skip_lines()?;
            if self.scan.eat("]") {
                return Ok(Data::List(items));
            }
            if self.scan.peek().is_none() {
                return Err(not_closed(start, "list", ']'));
            }
            items.push(self.value(depth)?);
            self.separator(start, "list", ']')?;
        }
    }

    /// `{ a = 1, b.c = 2 }`, also over several lines.
    fn inline_table(&mut self, depth: usize) -> Result<Data, Error> {
        let start = self.scan.here();
        self.scan.advance(1);
        let mut table = Table::default();
        loop {
            self.scan.skip_lines()?;
            if self.scan.eat("}") {
                table.made = Made::Inline;
                return Ok(Data::Table(table));
            }
            if self.scan.peek().is_none() {
                return Err(not_closed(start, "table", '}'));
            }
            let key = self.key()?;
            self.equals(&key)?;
            let value = self.value(depth + key.len())?;
            assign(&mut table, &key, value)?;
            self.separator(start, "table", '}')?;
        }
    }

    /// A comma, or the closing sign, which is left in place.
    fn separator(&mut self, start: Position, what: &str, close: char) -> Result<(), Error> {
        self.scan.skip_lines()?;
        if self.scan.eat(",") || self.scan.rest().starts_with(close) {
            return Ok(());
        }
        if self.scan.peek().is_none() {
            return Err(not_closed(start, what, close));
        }
        let found = self.found();
        let line = start.line;
        self.scan.error(format!(
            "expected ',' or '{close}' in the {what} that starts on line {line}, found {found}"
        ))
    }

    /// A value without quotes: a boolean, a number, or a mistake to explain.
    fn bare(&mut self) -> Result<Data, Error> {
        let at = self.scan.here();
        let word = self.scan.bare_value();
        if word.is_empty() {
            let found = self.found();
            return self.scan.error(format!("expected a value, found {found}"));
        }
        parse_word(word).map_err(|message| Error { at, message })
    }

    /// What stands at the cursor, in words for a message.
    fn found(&self) -> String {
        let line = self.scan.rest().lines().next().unwrap_or("");
        match line.trim_end() {
            _ if self.scan.rest().is_empty() => "the end of the file".to_owned(),
            "" => "the end of the line".to_owned(),
            line => quoted(line),
        }
    }
}

fn dotted(path: &[KeyPart]) -> String {
    let names: Vec<_> = path.iter().map(|part| part.name.as_str()).collect();
    let name = names.join(".");
    text::truncate_width(&text::visible_line(text::floor_char(&name, 400)), 80).into_owned()
}

fn not_closed(start: Position, what: &str, close: char) -> Error {
    Error {
        at: start,
        message: format!("the {what} that starts here is not closed; end it with '{close}'"),
    }
}

/// What the tree holds at a name already, for messages.
struct Held {
    kind: &'static str,
    line: usize,
}

impl Held {
    fn new(entry: &Entry) -> Held {
        Held { kind: entry.value.kind(), line: entry.at.line }
    }
}

/// Follows one part of a header down to its table: of a list, the newest element.
fn section_table<'t>(table: &'t mut Table, part: &KeyPart) -> Result<&'t mut Table, Error> {
    let entry = match table.position(&part.name) {
        Some(idx) => table.entry_mut(idx),
        None => {
            let data = Data::Table(Table::default());
            table.insert(&part.name, part.at, Value { at: part.at, data }, false)
        }
    };
    let held = Held::new(entry);
    let fail = |kind| {
        let name = dotted(std::slice::from_ref(part));
        let line = held.line;
        let message = format!("'{name}' is {kind} since line {line} and cannot hold more tables");
        Err(Error { at: part.at, message })
    };
    match &mut entry.value.data {
        Data::Table(table) if table.made == Made::Inline => fail("an inline table"),
        Data::Table(table) => Ok(table),
        Data::List(items) if entry.is_growing => {
            match items.last_mut().map(|item| &mut item.data) {
                Some(Data::Table(table)) => Ok(table),
                _ => fail(held.kind),
            }
        }
        _ => fail(held.kind),
    }
}

/// Makes the table that a header at `at` names.
fn open_section(
    root: &mut Table,
    path: &[KeyPart],
    at: Position,
    is_list: bool,
) -> Result<(), Error> {
    let Some((last, parents)) = path.split_last() else { return Ok(()) };
    let mut table = root;
    for part in parents {
        table = section_table(table, part)?;
    }
    let made = Value { at, data: Data::Table(Table::made(Made::ByHeader)) };
    let Some(idx) = table.position(&last.name) else {
        let value = match is_list {
            true => Value { at, data: Data::List(vec![made]) },
            false => made,
        };
        table.insert(&last.name, last.at, value, is_list);
        return Ok(());
    };
    let entry = table.entry_mut(idx);
    let Held { kind, line } = Held::new(entry);
    let name = dotted(path);
    let message = match (&mut entry.value.data, is_list) {
        (Data::List(items), true) if entry.is_growing => {
            items.push(made);
            return Ok(());
        }
        (Data::Table(table), false) if table.made == Made::Implied => {
            table.made = Made::ByHeader;
            entry.value.at = at;
            entry.at = last.at;
            return Ok(());
        }
        (Data::List(_), false) if entry.is_growing => {
            format!("'{name}' is a list of tables since line {line}; write [[{name}]] to add one")
        }
        (Data::Table(_), false) => format!(
            "the table '{name}' is defined twice, first on line {line}; put its keys together"
        ),
        (_, true) => format!(
            "'{name}' is {kind} since line {line} and cannot be a list of tables [[{name}]] too"
        ),
        (_, false) => format!("'{name}' is {kind} since line {line} and cannot be a table too"),
    };
    Err(Error { at: last.at, message })
}

/// Puts a value at a dotted key below `table`.
fn assign(mut table: &mut Table, key: &[KeyPart], value: Value) -> Result<(), Error> {
    let Some((last, parents)) = key.split_last() else { return Ok(()) };
    for part in parents {
        let entry = match table.position(&part.name) {
            Some(idx) => table.entry_mut(idx),
            None => {
                let made = Table::made(Made::ByDots);
                let made = Value { at: part.at, data: Data::Table(made) };
                table.insert(&part.name, part.at, made, false)
            }
        };
        let Held { kind, line } = Held::new(entry);
        table = match &mut entry.value.data {
            Data::Table(inner) if inner.made == Made::ByDots => inner,
            _ => {
                let name = dotted(key);
                let parent = dotted(std::slice::from_ref(part));
                let message = match kind {
                    "a table" => format!(
                        "'{name}' adds to '{parent}', a table of its own since line {line}; \
                         put the key there"
                    ),
                    _ => format!(
                        "'{name}' needs a table '{parent}', which is {kind} since line {line}"
                    ),
                };
                return Err(Error { at: part.at, message });
            }
        };
    }
    if let Some(idx) = table.position(&last.name) {
        let Held { kind, line } = Held::new(table.entry_mut(idx));
        let name = dotted(key);
        let message = match kind {
            "a table" => format!("'{name}' is a table since line {line} and cannot be a value too"),
            _ => format!("'{name}' is set twice, first on line {line}; keep one of the two"),
        };
        return Err(Error { at: last.at, message });
    }
    table.insert(&last.name, last.at, value, false);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &[(&str, Data)]) {
        let document = parse(text.as_bytes()).unwrap_or_else(|err| panic!("{text}\n{err}"));
        let found: Vec<_> =
            document.leaves().into_iter().map(|(path, value)| (path, value.data.clone())).collect();
        let want: Vec<_> = want.iter().map(|(p, data)| ((*p).to_owned(), data.clone())).collect();
        assert_eq!(found, want, "{text}");
    }

    #[track_caller]
    fn check_error(text: &str, want: &str) {
        let found = parse(text.as_bytes()).map_err(|err| err.to_string());
        assert_eq!(found.err().as_deref(), Some(want), "{text:?}");
    }

    fn text(text: &str) -> Data {
        Data::Text(text.to_owned())
    }

    /// The items of a list at a path.
    fn items(document: &Document, path: &str) -> Vec<Data> {
        let items = document.get(path).unwrap().as_list().unwrap();
        items.iter().map(|item| item.data.clone()).collect()
    }

    #[test]
    fn what_people_write_by_habit_is_read() {
        check(
            "\u{feff}# settings\r\ntop = 1\r\n\r\n[provider]\r\nmodel = 'm' # why\r\n",
            &[("top", Data::Int(1)), ("provider.model", text("m"))],
        );
        check(
            "a.b.c = true\na.\"d e\" = 1_000\n[ x . 'y.z' ]\n1 = ''",
            &[("a.b.c", Data::Bool(true)), ("a.d e", Data::Int(1000)), ("x.y.z.1", text(""))],
        );
        check("", &[]);
        check("# only\n\n\t\n# comments", &[]);
    }

    #[test]
    fn numbers_and_booleans_have_their_values() {
        check(
            "a = 1_000\nb = -17\nc = +0\nd = 0xDEAD_beef\ne = 0o17\nf = 0b101\n\
             g = 9223372036854775807\nh = -9223372036854775808\ni = 1.5\nj = -1e3\nk = 6.0_1E+2\n\
             l = inf\nm = true\nn = false",
            &[
                ("a", Data::Int(1000)),
                ("b", Data::Int(-17)),
                ("c", Data::Int(0)),
                ("d", Data::Int(0xdead_beef)),
                ("e", Data::Int(15)),
                ("f", Data::Int(5)),
                ("g", Data::Int(i64::MAX)),
                ("h", Data::Int(i64::MIN)),
                ("i", Data::Float(1.5)),
                ("j", Data::Float(-1000.0)),
                ("k", Data::Float(601.0)),
                ("l", Data::Float(f64::INFINITY)),
                ("m", Data::Bool(true)),
                ("n", Data::Bool(false)),
            ],
        );
    }

    #[test]
    fn all_four_kinds_of_strings_have_their_text() {
        check(
            "a = 'C:\\Users\\x'\n\
             b = \"C:\\\\Users \\u00e9 \\U0001F980 \\e \\x41 \\\" \\t# no comment\"\n\
             c = '''\nC:\\new\n''''\n\
             d = \"\"\"\none\\n\n  two \\\n     three\"\"\"\"\"\ne = ''\nf = \"\"",
            &[
                ("a", text("C:\\Users\\x")),
                ("b", text("C:\\Users é 🦀 \u{1b} A \" \t# no comment")),
                ("c", text("C:\\new\n'")),
                ("d", text("one\n\n  two three\"\"")),
                ("e", text("")),
                ("f", text("")),
            ],
        );
    }

    #[test]
    fn lists_and_inline_tables_may_span_lines() {
        let document = parse(
            b"env = [ # names\n  \"A\",\n\n  'B', # last\n]\nempty = []\n\
              t = { a = 1, b.c = [\n2,], # over lines\n d = {}, }",
        )
        .unwrap();
        assert_eq!(items(&document, "env"), [text("A"), text("B")]);
        assert_eq!(items(&document, "empty"), []);
        assert_eq!(document.get("t.a").unwrap().as_int(), Some(1));
        assert_eq!(items(&document, "t.b.c"), [Data::Int(2)]);
        assert!(document.get("t.d").unwrap().as_table().unwrap().is_empty());
        assert_eq!(document.get("t.d.e"), None);
    }

    #[test]
    fn lists_of_tables_keep_their_order_and_parts() {
        let document = parse(
            b"[[hooks]]\nevent = 'Stop'\n[[hooks]]\n[hooks.env]\nA = '1'\n[[hooks.more]]\n\
              [[subagents.profile]]\nname = 'a'\n[[subagents.profile]]\nname = 'b'\n\
              [subagents]\nenabled = true",
        )
        .unwrap();
        let hooks = document.get("hooks").unwrap().as_list().unwrap();
        let keys = |idx: usize| hooks[idx].as_table().unwrap().keys().collect::<Vec<_>>();
        assert_eq!((keys(0), keys(1)), (vec!["event"], vec!["env", "more"]));
        assert_eq!(hooks[1].at, Position { line: 3, column: 1 });
        let profiles = document.get("subagents.profile").unwrap().as_list().unwrap();
        let name = |profile: &Value| profile.as_table().unwrap().get("name").unwrap().clone();
        let names: Vec<_> = profiles.iter().map(|profile| name(profile).data).collect();
        assert_eq!(names, [text("a"), text("b")]);
        assert_eq!(document.get("subagents.enabled").unwrap().as_bool(), Some(true));
        assert_eq!(document.root.keys().collect::<Vec<_>>(), ["hooks", "subagents"]);
    }

    #[test]
    fn every_key_and_value_knows_its_place() {
        let document = parse("a = 1\n[t]\n  \"é界\".b =\t[ 'x',\n 'y']\n".as_bytes()).unwrap();
        let table = document.get("t").unwrap();
        assert_eq!(table.at, Position { line: 2, column: 1 });
        let inner = table.as_table().unwrap();
        assert_eq!(inner.key_at("é界"), Some(Position { line: 3, column: 3 }));
        let value = document.get("t.é界.b").unwrap();
        assert_eq!(value.at, Position { line: 3, column: 12 });
        let places: Vec<_> = value.as_list().unwrap().iter().map(|item| item.at).collect();
        assert_eq!(places, [Position { line: 3, column: 14 }, Position { line: 4, column: 2 }]);
    }

    #[test]
    fn a_bad_escape_is_named_with_what_to_write() {
        let hint = "write \\\\ for a backslash, or put the text in 'single quotes'";
        let table = [
            ("p = \"C:\\Users\\x\"", "1:8: the escape '\\U' needs 8 hex digits"),
            ("q = [\n  'ok',\n  \"F:\\deep\\dir\",\n]", "3:6: '\\d' is no escape"),
            ("r = { A = \"C:\\WIN\" }", "1:14: '\\W' is no escape"),
            ("r = \"\\", "1:6: a backslash may not end a line of this string"),
            ("r = \"\\x4\"", "1:6: the escape '\\x' needs 2 hex digits"),
            ("r = \"\\界\"", "1:6: '\\界' is no escape"),
            ("r = \"\\\t\"", "1:6: '\\<tab>' is no escape"),
            ("r = \"\"\"\n a \\b \\c\"\"\"", "2:7: '\\c' is no escape"),
        ];
        for (text, want) in table {
            check_error(text, &format!("{want}; {hint}"));
        }
        check_error("r = \"\\ud800\"", "1:6: '\\ud800' is no Unicode character");
    }

    #[test]
    #[rustfmt::skip]
    fn what_is_given_twice_names_the_first() {
        let table = [
            ("a = 1\nb = 2\na = 3", "3:1: 'a' is set twice, first on line 1; keep one of the two"),
            ("[t]\nx.y = 1\nx.y = 2", "3:3: 'x.y' is set twice, first on line 2; keep one of the two"),
            ("[t]\n[u]\n[t]", "3:2: the table 't' is defined twice, first on line 1; put its keys together"),
            ("[a.b]\n[a]\n[a.b]", "3:4: the table 'a.b' is defined twice, first on line 1; put its keys together"),
            ("a.b = 1\n[a]", "2:2: the table 'a' is defined twice, first on line 1; put its keys together"),
            ("a = {}\n[a.b]", "2:2: 'a' is an inline table since line 1 and cannot hold more tables"),
            ("a = 1\n[a.b]", "2:2: 'a' is a number since line 1 and cannot hold more tables"),
            ("a = 1\n[a]", "2:2: 'a' is a number since line 1 and cannot be a table too"),
            ("a = 1\na.b = 1", "2:1: 'a.b' needs a table 'a', which is a number since line 1"),
            ("[a.b]\n[a]\nb.c = 1", "3:1: 'b.c' adds to 'b', a table of its own since line 1; put the key there"),
            ("[a.b]\n[a]\nb = 1", "3:1: 'b' is a table since line 1 and cannot be a value too"),
            ("[[h]]\n[h]", "2:2: 'h' is a list of tables since line 1; write [[h]] to add one"),
            ("[h]\n[[h]]", "2:3: 'h' is a table since line 1 and cannot be a list of tables [[h]] too"),
            ("h = []\n[[h]]", "2:3: 'h' is a list since line 1 and cannot be a list of tables [[h]] too"),
            ("t = {a = 1, a = 2}", "1:13: 'a' is set twice, first on line 1; keep one of the two"),
        ];
        for (text, want) in table {
            check_error(text, want);
        }
    }

    #[test]
    #[rustfmt::skip]
    fn mistakes_are_explained() {
        let table = [
            ("a = 2024-05-01", "1:5: '2024-05-01' is a date or a time, and dates are not supported; write the value as a \"string\""),
            ("a = 07:32:00", "1:5: '07:32:00' is a date or a time, and dates are not supported; write the value as a \"string\""),
            ("model = gpt-5", "1:9: 'gpt-5' is no value; put text in \"quotes\""),
            ("a = yes", "1:5: 'yes' is no value; write true"),
            ("a = False", "1:5: 'False' is no value; write false"),
            ("a = null", "1:5: 'null' is no value in TOML; leave the key out instead"),
            ("a = “x”", "1:5: '“x”' starts with a typographic quote; use the plain \" or '"),
            ("a = .5", "1:5: '.5' is no number; write it like 0.5, or put text in \"quotes\""),
            ("a = 1__0", "1:5: '1__0' is no number; put it in \"quotes\" if it is text"),
            ("a = 007", "1:5: '007' is no number; a number does not start with 0; put it in \"quotes\" if it is text"),
            ("a = 0x", "1:5: '0x' is no number; '0x' is followed by digits of base 16"),
            ("a = 9223372036854775808", "1:5: '9223372036854775808' does not fit into 64 bits"),
            ("a = 30s", "1:5: '30s' is no number; put it in \"quotes\" if it is text"),
            ("a =", "1:4: the value is missing; write \"\" for an empty text"),
            ("a = # x", "1:5: the value is missing; write \"\" for an empty text"),
            ("a: 1", "1:2: expected '=' after 'a', found ': 1'; TOML sets a value by '=', not ':'"),
            ("a b = 1", "1:3: expected '=' after 'a', found 'b = 1'; a name with spaces or other signs stands in quotes"),
            ("a = 1 b = 2", "1:7: expected the end of the line, found 'b = 2'; give each setting its own line"),
            ("a = \"x\" trailing", "1:9: expected the end of the line, found 'trailing'; give each setting its own line"),
            ("[t] a = 1", "1:5: expected the end of the line, found 'a = 1'; give each setting its own line"),
            ("= 1", "1:1: expected a name, found '= 1'"),
            ("  é\u{301} = 1", "1:3: expected a name, found 'é\u{301} = 1'; a name with such letters stands in quotes"),
            ("[t", "1:3: expected ']' at the end of the table's name, found the end of the file"),
            ("[[t]", "1:4: expected ']]' at the end of the table's name, found ']'"),
            ("a = [1\nb = 2", "2:1: expected ',' or ']' in the list that starts on line 1, found 'b = 2'"),
            ("a = [1,", "1:5: the list that starts here is not closed; end it with ']'"),
            ("a = {b = 1", "1:5: the table that starts here is not closed; end it with '}'"),
            ("a = 'x", "1:5: the string that starts here has no closing ' on its line; text of several lines stands between ''' or \"\"\""),
            ("a = \"\"\"x\n", "1:5: the string that starts here has no closing \"\"\""),
            ("a = \"x\ty\u{1}\"", "1:9: control character U+0001 in a string; write it as \\u0001 in double quotes"),
            ("# a\u{0}", "1:4: control character U+0000 in a comment; remove it"),
            ("a = 1 # x\ry", "1:10: a carriage return without a line feed stands in a comment; end lines with LF or CRLF"),
            ("a = \u{1b}[31m", "1:5: expected a value, found '^[[31m'"),
        ];
        for (text, want) in table {
            check_error(text, want);
        }
        let found = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
        let not_utf8 = "2:7: byte 0xff is not UTF-8; save the file as UTF-8";
        assert_eq!(found(b"a = 1\nb = '\xc3\xa9\xff'"), not_utf8);
        assert_eq!(found(b"\xff\xfea\0"), "1:1: the file is UTF-16; save it as UTF-8");
        let too_large = "1:1: the file is larger than 4.0MB, which no settings need";
        assert_eq!(found(&vec![b'#'; BYTES_MAX + 1]), too_large);
    }

    #[test]
    fn depth_is_limited_and_work_is_linear() {
        let deep = |open: &str, close: &str, levels: usize| {
            parse(format!("a = {}1{}", open.repeat(levels), close.repeat(levels)).as_bytes())
        };
        for (open, close) in [("[", "]"), ("{a=", "}"), ("[{a=", "}]")] {
            let message = deep(open, close, 100_000).unwrap_err().message;
            assert_eq!(message, "nested more than 64 levels deep; flatten the settings");
            assert!(deep(open, close, 20).is_ok());
        }
        for text in ["a.".repeat(100_000), format!("[{}a]", "a.".repeat(100_000))] {
            assert!(parse(text.as_bytes()).is_err());
        }
        // Each takes minutes if places, keys or tables are looked for from the start.
        let one_line = format!("a = [{}]", "1, ".repeat(100_000));
        let keys: String = (0..50_000).map(|n| format!("k{n} = 1\n")).collect();
        let tables = "[[t.u.v]]\n".repeat(50_000);
        let dotted: String = (0..50_000).map(|n| format!("a.b.c.k{n} = ''\n")).collect();
        for text in [one_line, keys, tables, dotted] {
            assert!(parse(text.as_bytes()).is_ok());
        }
        assert!(parse(("a = ".to_owned() + &"'".repeat(3_000_000)).as_bytes()).is_err());
    }
}
