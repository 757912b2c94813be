//! Names that look like a name that is not there.
//!
//! Two degrees: *alike* names differ only in what writing software changes behind one's back
//! (typographic apostrophes, unusual spaces, dashes, composed or decomposed accents) and may be
//! meant; *similar* names are only worth a hint (other case, a typing slip, another extension).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

/// Folders larger than this are not looked through: a hint is not worth more.
const NAMES_MAX: usize = 20_000;
const SIMILAR_MAX: usize = 5;

/// Names of one folder near to a wanted one, each list sorted.
pub struct Near {
    pub alike: Vec<OsString>,
    pub similar: Vec<OsString>,
}

/// What `dir` has near to `name`; empty when it cannot be listed.
pub fn near(dir: &Path, name: &OsStr) -> Near {
    let mut near = Near { alike: Vec::new(), similar: Vec::new() };
    let Ok(entries) = fs::read_dir(dir) else { return near };
    let wanted = fold(&name.to_string_lossy());
    let wanted_lower = wanted.to_lowercase();
    let mut ranked = Vec::new();
    for entry in entries.take(NAMES_MAX).flatten() {
        let candidate = entry.file_name();
        let folded = fold(&candidate.to_string_lossy());
        if folded == wanted {
            near.alike.push(candidate);
        } else if let Some(rank) = rank(&wanted_lower, &folded.to_lowercase()) {
            ranked.push((rank, candidate));
        }
    }
    near.alike.sort();
    ranked.sort();
    near.similar.extend(ranked.into_iter().take(SIMILAR_MAX).map(|(_, name)| name));
    near
}

/// How near two lower-case names are, 0 the nearest; `None` when a hint would not help.
fn rank(wanted: &str, name: &str) -> Option<usize> {
    if name == wanted {
        return Some(0);
    }
    let stem = |text: &str| text.rsplit_once('.').map_or(text, |(stem, _)| stem).to_owned();
    if stem(wanted) == stem(name) && !stem(wanted).is_empty() {
        return Some(1);
    }
    let chars: Vec<char> = wanted.chars().collect();
    let slips_max = (chars.len() / 4).clamp(1, 3);
    let slips = distance(&chars, &name.chars().collect::<Vec<_>>(), slips_max);
    if slips <= slips_max && slips < chars.len() {
        return Some(1 + slips);
    }
    let inside = wanted.len() >= 3 && name.len() >= 3;
    (inside && (name.contains(wanted) || wanted.contains(name))).then_some(9)
}

/// Edit distance with swaps of neighbours as one slip; more than `max` is only known as more.
fn distance(a: &[char], b: &[char], max: usize) -> usize {
    if a.len().abs_diff(b.len()) > max {
        return max + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for row in 1..=a.len() {
        let mut line = vec![row];
        for column in 1..=b.len() {
            let same = a[row - 1] == b[column - 1];
            let mut best = (above[column - 1] + usize::from(!same))
                .min(above[column] + 1)
                .min(line[column - 1] + 1);
            let swapped =
                row > 1 && column > 1 && a[row - 1] == b[column - 2] && a[row - 2] == b[column - 1];
            if swapped {
                best = best.min(before[column - 2] + 1);
            }
            line.push(best);
        }
        before = std::mem::replace(&mut above, line);
    }
    above[b.len()]
}

/// One form for all names that look alike.
pub fn fold(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut marks: Vec<char> = Vec::new();
    let mut emit = |c: char, marks: &mut Vec<char>| {
        if is_mark(c) {
            marks.push(c);
        } else {
            marks.sort_unstable();
            out.extend(marks.drain(..));
            out.push(c);
        }
    };
    for c in name.chars() {
        let (base, own) = decompose(plain(c));
        emit(base, &mut marks);
        marks.extend(own.into_iter().flatten());
    }
    emit('\0', &mut marks);
    out.pop();
    out
}

fn plain(c: char) -> char {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' | '\u{2bc}' | '\u{ff07}' => {
            '\''
        }
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ff02}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{ff0d}' => '-',
        c if c.is_whitespace() && !c.is_control() => ' ',
        c => c,
    }
}

fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{3099}' | '\u{309a}')
}

/// The base letter of a composed one and its marks, at most two.
fn decompose(c: char) -> (char, [Option<char>; 2]) {
    let Some((first, outer)) = split(c) else { return (c, [None, None]) };
    match split(first) {
        Some((base, inner)) => (base, [Some(inner), Some(outer)]),
        None => (first, [Some(outer), None]),
    }
}

fn split(c: char) -> Option<(char, char)> {
    if c.is_ascii() {
        return None;
    }
    COMPOSED.iter().find_map(|(mark, composed, bases)| {
        let at = composed.chars().position(|candidate| candidate == c)?;
        Some((bases.chars().nth(at)?, *mark))
    })
}

/// Canonical decompositions of Latin, Greek, Cyrillic and kana letters (Unicode Character
/// Database): a mark, letters that carry it, the same letters without it.
#[rustfmt::skip]
const COMPOSED: &[(char, &str, &str)] = &[
    ('\u{300}', "ÀÈÌÒÙàèìòùǛǜǸǹЀЍѐѝḔḕṐṑẀẁẦầẰằỀềỒồỜờỪừỲỳ", "AEIOUaeiouÜüNnЕИеиĒēŌōWwÂâĂăÊêÔôƠơƯưYy"),
    ('\u{301}', "ÁÉÍÓÚÝáéíóúýĆćĹĺŃńŔŕŚśŹźǗǘǴǵǺǻǼǽǾǿ΅ΆΈΉΊΌ", "AEIOUYaeiouyCcLlNnRrSsZzÜüGgÅåÆæØø¨ΑΕΗΙΟ"),
    ('\u{301}', "ΎΏΐάέήίΰόύώϓЃЌѓќḈḉḖḗḮḯḰḱḾḿṌṍṒṓṔṕṸṹẂẃẤấẮắ", "ΥΩϊαεηιϋουωϒГКгкÇçĒēÏïKkMmÕõŌōPpŨũWwÂâĂă"),
    ('\u{301}', "ẾếỐốỚớỨứ", "ÊêÔôƠơƯư"),
    ('\u{302}', "ÂÊÎÔÛâêîôûĈĉĜĝĤĥĴĵŜŝŴŵŶŷẐẑẬậỆệỘộ", "AEIOUaeiouCcGgHhJjSsWwYyZzẠạẸẹỌọ"),
    ('\u{303}', "ÃÑÕãñõĨĩŨũṼṽẪẫẴẵẼẽỄễỖỗỠỡỮữỸỹ", "ANOanoIiUuVvÂâĂăEeÊêÔôƠơƯưYy"),
    ('\u{304}', "ĀāĒēĪīŌōŪūǕǖǞǟǠǡǢǣǬǭȪȫȬȭȰȱȲȳӢӣӮӯḠḡḸḹṜṝ", "AaEeIiOoUuÜüÄäȦȧÆæǪǫÖöÕõȮȯYyИиУуGgḶḷṚṛ"),
    ('\u{306}', "ĂăĔĕĞğĬĭŎŏŬŭЎЙйўӁӂӐӑӖӗḜḝẶặ", "AaEeGgIiOoUuУИиуЖжАаЕеȨȩẠạ"),
    ('\u{307}', "ĊċĖėĠġİŻżȦȧȮȯḂḃḊḋḞḟḢḣṀṁṄṅṖṗṘṙṠṡṤṥṦṧṨṩṪṫẆ", "CcEeGgIZzAaOoBbDdFfHhMmNnPpRrSsŚśŠšṢṣTtW"),
    ('\u{307}', "ẇẊẋẎẏẛ", "wXxYyſ"),
    ('\u{308}', "ÄËÏÖÜäëïöüÿŸΪΫϊϋϔЁЇёїӒӓӚӛӜӝӞӟӤӥӦӧӪӫӬӭӰӱӴ", "AEIOUaeiouyYΙΥιυϒЕІеіАаӘәЖжЗзИиОоӨөЭэУуЧ"),
    ('\u{308}', "ӵӸӹḦḧṎṏṺṻẄẅẌẍẗ", "чЫыHhÕõŪūWwXxt"),
    ('\u{309}', "ẢảẨẩẲẳẺẻỂểỈỉỎỏỔổỞởỦủỬửỶỷ", "AaÂâĂăEeÊêIiOoÔôƠơUuƯưYy"),
    ('\u{30a}', "ÅåŮůẘẙ", "AaUuwy"),
    ('\u{30b}', "ŐőŰűӲӳ", "OoUuУу"),
    ('\u{30c}', "ČčĎďĚěĽľŇňŘřŠšŤťŽžǍǎǏǐǑǒǓǔǙǚǦǧǨǩǮǯǰȞȟ", "CcDdEeLlNnRrSsTtZzAaIiOoUuÜüGgKkƷʒjHh"),
    ('\u{30f}', "ȀȁȄȅȈȉȌȍȐȑȔȕѶѷ", "AaEeIiOoRrUuѴѵ"),
    ('\u{311}', "ȂȃȆȇȊȋȎȏȒȓȖȗ", "AaEeIiOoRrUu"),
    ('\u{31b}', "ƠơƯư", "OoUu"),
    ('\u{323}', "ḄḅḌḍḤḥḲḳḶḷṂṃṆṇṚṛṢṣṬṭṾṿẈẉẒẓẠạẸẹỊịỌọỢợỤụỰự", "BbDdHhKkLlMmNnRrSsTtVvWwZzAaEeIiOoƠơUuƯư"),
    ('\u{323}', "Ỵỵ", "Yy"),
    ('\u{324}', "Ṳṳ", "Uu"),
    ('\u{325}', "Ḁḁ", "Aa"),
    ('\u{326}', "ȘșȚț", "SsTt"),
    ('\u{327}', "ÇçĢģĶķĻļŅņŖŗŞşŢţȨȩḐḑḨḩ", "CcGgKkLlNnRrSsTtEeDdHh"),
    ('\u{328}', "ĄąĘęĮįŲųǪǫ", "AaEeIiUuOo"),
    ('\u{32d}', "ḒḓḘḙḼḽṊṋṰṱṶṷ", "DdEeLlNnTtUu"),
    ('\u{32e}', "Ḫḫ", "Hh"),
    ('\u{330}', "ḚḛḬḭṴṵ", "EeIiUu"),
    ('\u{331}', "ḆḇḎḏḴḵḺḻṈṉṞṟṮṯẔẕẖ", "BbDdKkLlNnRrTtZzh"),
    ('\u{3099}', "がぎぐげござじずぜぞだぢづでどばびぶべぼゔゞガギグゲゴザジズゼゾダヂヅデドバビブ", "かきくけこさしすせそたちつてとはひふへほうゝカキクケコサシスセソタチツテトハヒフ"),
    ('\u{3099}', "ベボヴヷヸヹヺヾ", "ヘホウワヰヱヲヽ"),
    ('\u{309a}', "ぱぴぷぺぽパピプペポ", "はひふへほハヒフヘホ"),];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_fold_to_one() {
        let check = |a: &str, b: &str| assert_eq!(fold(a), fold(b), "{a} {b}");
        check("it\u{2019}s.txt", "it's.txt");
        check("7.30\u{202f}PM", "7.30 PM");
        check("caf\u{e9}", "cafe\u{301}");
        check("\u{1ed9}", "o\u{302}\u{323}");
        check("\u{1ed9}", "o\u{323}\u{302}");
        check("\u{304c}", "\u{304b}\u{3099}");
        check("a\u{2013}b", "a-b");
        assert_ne!(fold("cafe"), fold("caf\u{e9}"));
        assert_ne!(fold("Readme"), fold("README"));
        assert_eq!(fold("plain name.rs"), "plain name.rs");
    }

    #[test]
    fn table_rows_pair_up() {
        for (mark, composed, bases) in COMPOSED {
            assert!(is_mark(*mark));
            assert_eq!(composed.chars().count(), bases.chars().count());
        }
    }

    #[test]
    fn hints_rank_case_stem_and_slips() {
        assert_eq!(rank("readme.md", "readme.md"), Some(0));
        assert_eq!(rank("main.rs", "main.go"), Some(1));
        assert_eq!(rank("mian.rs", "main.rs"), Some(2));
        assert_eq!(rank("config", "config_check.rs"), Some(9));
        assert_eq!(rank("a", "b"), None);
        assert_eq!(rank("alpha.rs", "omega.py"), None);
    }
}
