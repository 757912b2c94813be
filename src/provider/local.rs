//! Finds a model server on this machine, on the ports where they usually listen.
//!
//! Asks nothing but `GET /v1/models` on loopback, all ports at once, and takes no longer than
//! [`PROBE_MAX`] in all.

use std::time::Duration;

use crossbeam_channel::{after, bounded, select};

use crate::cancel::{Cancel, Reason};
use crate::host::Host;
use crate::model::{ErrorKind, ModelError};
use crate::provider::openai::endpoint::Endpoint;
use crate::provider::openai::models;
use crate::wire::http::{Http, Timeouts};

/// Ollama, llama.cpp, LM Studio, vLLM: in the order in which they are reported.
pub const PORTS: [u16; 4] = [11434, 8080, 1234, 8000];
/// How long all ports together may take.
pub const PROBE_MAX: Duration = Duration::from_millis(200);

/// A server that answered with a list of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// `http://localhost:PORT/v1`.
    pub base_url: String,
    /// Its first model; `None` when it has none loaded.
    pub model: Option<String>,
}

/// Every server found, in the order of [`PORTS`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    pub servers: Vec<Server>,
}

impl Found {
    /// The server to use when there is exactly one that has a model.
    pub fn only(&self) -> Option<(&str, &str)> {
        match self.servers.as_slice() {
            [Server { base_url, model: Some(model) }] => Some((base_url, model)),
            _ => None,
        }
    }
}

/// Looks for servers on this machine.
pub fn probe(host: &Host, cancel: &Cancel) -> Found {
    probe_ports(host, &PORTS, cancel)
}

/// As [`probe`], on these ports.
pub fn probe_ports(host: &Host, ports: &[u16], cancel: &Cancel) -> Found {
    let until = cancel.child();
    let (sender, receiver) = bounded(ports.len());
    let mut servers: Vec<Option<Server>> = vec![None; ports.len()];
    std::thread::scope(|scope| {
        for (at, port) in ports.iter().enumerate() {
            let (sender, until) = (sender.clone(), &until);
            scope.spawn(move || {
                let _ = sender.send((at, ask(host, *port, until)));
            });
        }
        let deadline = after(PROBE_MAX);
        for _ in ports {
            select! {
                recv(receiver) -> answer => if let Ok((at, server)) = answer {
                    servers[at] = server;
                },
                recv(deadline) -> _ => break,
                recv(cancel.channel()) -> _ => break,
            }
        }
        // Ends every thread that still waits, so that the scope ends.
        until.cancel(Reason::User);
    });
    Found { servers: servers.into_iter().flatten().collect() }
}

fn ask(host: &Host, port: u16, until: &Cancel) -> Option<Server> {
    let base_url = format!("http://localhost:{port}/v1");
    let endpoint = Endpoint::parse(&base_url).ok()?;
    let timeouts = Timeouts { connect: PROBE_MAX, headers: PROBE_MAX, idle: PROBE_MAX };
    let transport = Http::new(host, timeouts);
    let models = models::list(&transport, &endpoint, None, host, until).ok()?;
    Some(Server { base_url, model: models.into_iter().next() })
}

/// The error of a run that asked for a local server when there is none, or several.
pub fn none_to_use(found: &Found) -> ModelError {
    let servers = found.servers.as_slice();
    let names = |server: &Server| match &server.model {
        Some(model) => format!("{} ({model})", server.base_url),
        None => format!("{} (no model loaded)", server.base_url),
    };
    let error = |text: String| ModelError::new(ErrorKind::Network, text).not_retryable();
    match servers {
        [] => {
            let ports = PORTS.map(|port| port.to_string()).join(", ");
            error(format!("no model server answers on this machine (ports {ports})"))
                .with_hint("start one, or set --base-url")
        }
        [Server { base_url, model: None }] => {
            error(format!("the server at {base_url} has no model loaded"))
                .with_hint("load one, or set --model")
        }
        several => {
            let names: Vec<_> = several.iter().map(names).collect();
            error(format!("several model servers answer: {}", names.join(", ")))
                .with_hint("choose one with --base-url and --model")
        }
    }
}
