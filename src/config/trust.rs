//! Which projects' files the person has accepted: path and content, kept outside any project.
//!
//! A record holds for exactly the bytes that were accepted: whoever changes the file has to be
//! accepted again. Records are lines of `trust.jsonl` in the user's state folder; a file of theirs
//! that others may write to is not believed.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use serde::{Deserialize, Serialize};

use crate::host::Host;

/// A larger file is no list of projects that a person accepted.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRecord {
    /// The configuration file, absolute, links resolved.
    pub path: PathBuf,
    /// Of its content, in hex.
    pub sha256: String,
    /// When it was accepted.
    pub time: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustState {
    Trusted,
    /// Another content of this file was accepted.
    Changed,
    Unknown,
}

/// The records, at most one per path.
#[derive(Debug)]
pub struct TrustStore {
    file: PathBuf,
    records: Vec<TrustRecord>,
    /// Whole lines for stderr, without a prefix.
    pub warnings: Vec<String>,
}

impl TrustStore {
    /// Reads the records; without any, or without a state folder, there are none.
    pub fn open(host: &Host) -> TrustStore {
        let file = host.state_dir().map(|dir| dir.join("trust.jsonl")).unwrap_or_default();
        let mut store = TrustStore { file, records: Vec::new(), warnings: Vec::new() };
        let Ok(metadata) = fs::metadata(&store.file) else { return store };
        let shown = store.file.display();
        if !metadata.is_file() || metadata.len() > BYTES_MAX {
            store
                .warnings
                .push(format!("{shown}: not a list of trusted projects; nothing is trusted"));
            return store;
        }
        if metadata.permissions().mode() & 0o022 != 0 {
            store.warnings.push(format!(
                "{shown}: others may write to it; nothing is trusted (chmod 600 it)"
            ));
            return store;
        }
        match fs::read_to_string(&store.file) {
            Ok(text) => {
                let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
                for (line_idx, line) in lines {
                    match serde_json::from_str::<TrustRecord>(line) {
                        Ok(record) => store.put(record),
                        Err(_) => store.warnings.push(format!(
                            "{}:{}: not a record of a trusted project; it is passed over",
                            store.file.display(),
                            line_idx + 1
                        )),
                    }
                }
            }
            Err(error) => {
                store.warnings.push(format!("{shown}: {error}; nothing is trusted"));
            }
        }
        store
    }

    pub fn records(&self) -> &[TrustRecord] {
        &self.records
    }

    pub fn state(&self, path: &Path, content: &[u8]) -> TrustState {
        let path = real(path);
        match self.records.iter().find(|record| record.path == path) {
            Some(record) if record.sha256 == sha256(content) => TrustState::Trusted,
            Some(_) => TrustState::Changed,
            None => TrustState::Unknown,
        }
    }

    /// Accepts this content of the file, in place of any other.
    pub fn accept(
        &mut self,
        host: &Host,
        path: &Path,
        content: &[u8],
    ) -> Result<TrustRecord, String> {
        let path = real(path);
        let record = TrustRecord { path, sha256: sha256(content), time: host.now().to_rfc3339() };
        self.put(record.clone());
        self.save()?;
        Ok(record)
    }

    /// Forgets the file; false when it was not known.
    pub fn remove(&mut self, path: &Path) -> Result<bool, String> {
        let path = real(path);
        let before = self.records.len();
        self.records.retain(|record| record.path != path);
        if self.records.len() == before {
            return Ok(false);
        }
        self.save().map(|()| true)
    }

    fn put(&mut self, record: TrustRecord) {
        self.records.retain(|known| known.path != record.path);
        self.records.push(record);
    }

    /// Replaces the file: whoever reads meanwhile finds the old list or the new one.
    fn save(&self) -> Result<(), String> {
        let Some(folder) = self.file.parent().filter(|_| self.file.is_absolute()) else {
            return Err("no place to keep trust: set HOME or XDG_STATE_HOME".to_owned());
        };
        let mut text = String::new();
        for record in &self.records {
            text.push_str(&serde_json::to_string(record).map_err(|error| error.to_string())?);
            text.push('\n');
        }
        let temporary = folder.join(format!(".trust-{}.tmp", std::process::id()));
        let write = || {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
            fs::rename(&temporary, &self.file)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&temporary);
            format!("cannot write {}: {error}", self.file.display())
        })
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// In hex. The digest is the one that TLS brings along anyway.
fn sha256(content: &[u8]) -> String {
    let suite = TLS13_AES_128_GCM_SHA256.tls13().expect("it is a suite of TLS 1.3");
    let digest = suite.common.hash_provider.hash(content);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_sha_256() {
        let check = |content: &[u8], want: &str| assert_eq!(sha256(content), want);
        check(b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        check(b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
