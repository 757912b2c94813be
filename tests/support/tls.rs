//! TLS for scripted servers: the certificates of `fixtures/tls`.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/tls").join(name)
}

/// The authority that signed the server's certificate: for `SSL_CERT_FILE`.
pub fn authority_file() -> PathBuf {
    file("ca.pem")
}

/// A server for `localhost` and `127.0.0.1`.
pub fn server_config() -> Arc<rustls::ServerConfig> {
    let certificate = CertificateDer::from_pem_file(file("server.pem")).expect("a fixture");
    let key = PrivateKeyDer::from_pem_file(file("server.key")).expect("a fixture");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a fixture");
    Arc::new(config)
}
