//! The only reader of time, randomness, environment, home and working directory.
//!
//! Everyone else gets a `&Host`. [`Host::fixed`] is the same type with a clock that moves one
//! second per reading, counted ids, no jitter and an empty environment, so that whole logs and
//! transcripts compare byte for byte in tests.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::sys;

/// A point in time: nanoseconds since 1970-01-01T00:00:00Z, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp(pub u64);

/// 2026-01-01T00:00:00Z, where the fixed clock starts.
const FIXED_START_NANOS: u64 = 1_767_225_600_000_000_000;
const NANOS: u64 = 1_000_000_000;

pub struct Host {
    source: Source,
    env: BTreeMap<OsString, OsString>,
    cwd: PathBuf,
    home: Option<PathBuf>,
    temp: PathBuf,
}

enum Source {
    Real { start: Instant },
    Fixed { readings: AtomicU64, ids: AtomicU64 },
}

impl Host {
    /// The process as it is. A working directory that does not exist any more is reported as `.`.
    pub fn from_process() -> Host {
        let env: BTreeMap<_, _> = std::env::vars_os().collect();
        let home = env.get(OsStr::new("HOME")).filter(|home| !home.is_empty()).map(PathBuf::from);
        Host {
            source: Source::Real { start: Instant::now() },
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            home,
            temp: std::env::temp_dir(),
            env,
        }
    }

    /// A host whose every answer is known beforehand. The working directory is `/`, there is no
    /// home: tests set what they need.
    pub fn fixed() -> Host {
        Host {
            source: Source::Fixed { readings: AtomicU64::new(0), ids: AtomicU64::new(0) },
            env: BTreeMap::new(),
            cwd: PathBuf::from("/"),
            home: None,
            temp: std::env::temp_dir(),
        }
    }

    /// The same host in another directory (`-C DIR`).
    #[must_use]
    pub fn with_cwd(mut self, cwd: impl Into<PathBuf>) -> Host {
        self.cwd = cwd.into();
        self
    }

    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Host {
        self.home = Some(home.into());
        self
    }

    #[must_use]
    pub fn with_var(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Host {
        self.env.insert(name.into(), value.into());
        self
    }

    /// The wall clock.
    pub fn now(&self) -> Timestamp {
        match &self.source {
            Source::Real { .. } => Timestamp::from(SystemTime::now()),
            Source::Fixed { readings, .. } => {
                let count = readings.fetch_add(1, Ordering::Relaxed);
                Timestamp(FIXED_START_NANOS + count * NANOS)
            }
        }
    }

    /// Time since an arbitrary start that never goes backwards: for durations. A fixed host
    /// always says zero.
    pub fn elapsed(&self) -> Duration {
        match &self.source {
            Source::Real { start } => start.elapsed(),
            Source::Fixed { .. } => Duration::ZERO,
        }
    }

    /// A new unique id: 32 lower-case hex digits of 128 random bits; `id-0001`, … when fixed.
    pub fn new_id(&self) -> String {
        match &self.source {
            Source::Real { .. } => {
                let mut bytes = [0_u8; 16];
                if sys::random_bytes(&mut bytes).is_err() {
                    // No randomness from the kernel: time and address still tell runs apart.
                    let seed = self.now().0 ^ u64::from(std::process::id()).rotate_left(32);
                    bytes[..8].copy_from_slice(&seed.to_be_bytes());
                    bytes[8..].copy_from_slice(&self.elapsed().as_nanos().to_be_bytes()[8..]);
                }
                bytes.iter().map(|byte| format!("{byte:02x}")).collect()
            }
            Source::Fixed { ids, .. } => {
                format!("id-{:04}", ids.fetch_add(1, Ordering::Relaxed) + 1)
            }
        }
    }

    /// A random factor from -1.0 up to 1.0, for spreading retries; 0.0 when fixed.
    pub fn jitter(&self) -> f64 {
        let mut bytes = [0_u8; 4];
        match &self.source {
            Source::Real { .. } if sys::random_bytes(&mut bytes).is_ok() => {
                f64::from(u32::from_be_bytes(bytes)) / f64::from(u32::MAX) * 2.0 - 1.0
            }
            _ => 0.0,
        }
    }

    /// An environment variable as text; `None` when it is unset, empty or not UTF-8.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.get(OsStr::new(name))?.to_str().filter(|value| !value.is_empty())
    }

    /// The whole environment, sorted by name.
    pub fn vars(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    pub fn temp_dir(&self) -> &Path {
        &self.temp
    }

    /// `$XDG_STATE_HOME/etch`, else `~/.local/state/etch`: what etch keeps for this user outside
    /// any project. `None` without a home.
    pub fn state_dir(&self) -> Option<PathBuf> {
        if let Some(dir) = self.var("XDG_STATE_HOME").filter(|dir| dir.starts_with('/')) {
            return Some(Path::new(dir).join("etch"));
        }
        Some(self.home.as_ref()?.join(".local/state/etch"))
    }

    /// The root of the project that the working directory is in: the nearest directory, from
    /// there up, with `.etch/config.toml` or `.git` (a folder, or the file of a linked work
    /// tree). The search ends at the home directory, which is never a project itself.
    pub fn project_root(&self) -> Option<PathBuf> {
        let home = self.home.as_deref();
        let real_home = home.and_then(|home| home.canonicalize().ok());
        for dir in self.cwd.ancestors() {
            if Some(dir) == home || Some(dir) == real_home.as_deref() {
                return None;
            }
            if dir.join(".etch/config.toml").is_file() || dir.join(".git").exists() {
                return Some(dir.to_path_buf());
            }
        }
        None
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Timestamp {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Timestamp {
    /// `2026-01-01T00:00:00.000000000Z`: RFC 3339, UTC, nanoseconds (trailing zeros cut).
    pub fn to_rfc3339(self) -> String {
        let (secs, nanos) = (self.0 / NANOS, self.0 % NANOS);
        let (year, month, day) = civil_from_days(secs / 86_400);
        let rest = secs % 86_400;
        let mut out = format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
            rest / 3600,
            rest / 60 % 60,
            rest % 60
        );
        if nanos > 0 {
            let fraction = format!("{nanos:09}");
            out.push('.');
            out.push_str(fraction.trim_end_matches('0'));
        }
        out.push('Z');
        out
    }

    /// Reads RFC 3339 in UTC or with an offset; `None` for anything else or before 1970.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let (date, time) = text.split_at_checked(10)?;
        let mut parts = date.split('-').map(|part| part.parse::<u64>().ok());
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day)
        {
            return None;
        }
        let time = time.strip_prefix(['T', 't', ' '])?;
        let zone = time.rfind(['Z', 'z', '+', '-'])?;
        let (clock, zone) = time.split_at(zone);
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
        let mut parts = clock.split(':').map(|part| part.parse::<u64>().ok());
        let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
        if hour > 23 || minute > 59 || second > 60 || !fraction.bytes().all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let nanos: u64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
        let offset = match zone {
            "Z" | "z" => 0,
            _ => {
                let (hours, minutes) = zone[1..].split_once(':')?;
                let size = hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60;
                if zone.starts_with('-') { -size } else { size }
            }
        };
        let secs = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
        let secs = secs.checked_add_signed(-offset)?;
        Some(Timestamp(secs.checked_mul(NANOS)?.checked_add(nanos)?))
    }

    /// The time from `earlier` to this, zero when it is the other way round.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Year, month (1..=12) and day (1..=31) of a day counted from 1970-01-01 (Hinnant's algorithm).
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// The inverse of [`civil_from_days`].
fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_back() {
        let check = |nanos: u64, text: &str| {
            assert_eq!(Timestamp(nanos).to_rfc3339(), text);
            assert_eq!(Timestamp::parse(text), Some(Timestamp(nanos)), "{text}");
        };
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_400 * NANOS, "2000-02-29T00:00:00Z");
        check(FIXED_START_NANOS, "2026-01-01T00:00:00Z");
        check(1_782_345_303_256_533_466, "2026-06-24T23:55:03.256533466Z");
        check(4_102_444_799 * NANOS + 500_000_000, "2099-12-31T23:59:59.5Z");
        let zoned = Timestamp::parse("2026-01-01T02:30:00+02:30");
        assert_eq!(zoned, Some(Timestamp(FIXED_START_NANOS)));
        for bad in ["", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "é026-01-01T"]
        {
            assert_eq!(Timestamp::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_round_trips() {
        for days in 0..146_097 {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }

    #[test]
    fn the_project_is_the_nearest_marked_directory_below_home() {
        let temp =
            std::env::temp_dir().join(format!("etch-root-{}", Host::from_process().new_id()));
        let make = |path: &str| std::fs::create_dir_all(temp.join(path)).unwrap();
        make("home/.etch");
        make("home/loose/deep");
        make("home/repo/.git");
        make("home/repo/a/sub/.etch");
        make("home/repo/a/b");
        make("home/linked/x");
        std::fs::write(temp.join("home/.etch/config.toml"), "").unwrap();
        std::fs::write(temp.join("home/repo/a/sub/.etch/config.toml"), "").unwrap();
        std::fs::write(temp.join("home/linked/.git"), "gitdir: elsewhere\n").unwrap();
        let check = |cwd: &str, want: Option<&str>| {
            let host = Host::fixed().with_home(temp.join("home")).with_cwd(temp.join(cwd));
            assert_eq!(host.project_root(), want.map(|want| temp.join(want)), "{cwd}");
        };
        check("home/loose/deep", None);
        check("home", None);
        check("home/repo", Some("home/repo"));
        check("home/repo/a/b", Some("home/repo"));
        check("home/repo/a/sub", Some("home/repo/a/sub"));
        check("home/linked/x", Some("home/linked"));
        std::fs::remove_dir_all(&temp).unwrap();
    }

    #[test]
    fn a_fixed_host_repeats_itself_and_a_real_one_does_not() {
        let host = Host::fixed();
        assert_eq!(host.now().to_rfc3339(), "2026-01-01T00:00:00Z");
        assert_eq!(host.now().to_rfc3339(), "2026-01-01T00:00:01Z");
        assert_eq!((host.new_id(), host.new_id()), ("id-0001".into(), "id-0002".into()));
        let real = Host::from_process();
        let (one, two) = (real.new_id(), real.new_id());
        assert!(one.len() == 32 && one != two, "{one} {two}");
        assert!((-1.0..=1.0).contains(&real.jitter()));
    }
}
