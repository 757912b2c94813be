//! The cryptography behind `https`: ring's, without what only a client with keys of its own needs;
//! and who is trusted.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, KeyProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::SigningKey;
use rustls::{ClientConfig, Error, RootCertStore};

/// Every cipher suite, key exchange and kind of certificate that ring has.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider { key_provider: &NoKeys, ..ring::default_provider() })
}

/// No certificate identifies this client, so no key signs. Leaving the signers out of the binary
/// is why this provider is ours.
#[derive(Debug)]
struct NoKeys;

impl KeyProvider for NoKeys {
    fn load_private_key(&self, _: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        Err(Error::General("client certificates are not supported".into()))
    }
}

/// What a client trusts: the certificates of `roots_file`, or the built-in ones without it.
pub fn client_config(roots_file: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let roots = match roots_file {
        Some(path) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(read_roots(path)?);
            roots
        }
        None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
    };
    let builder = ClientConfig::builder_with_provider(provider());
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// The certificates of `SSL_CERT_FILE`, at least one.
pub fn read_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| format!("SSL_CERT_FILE: cannot read {shown}: {error}"))?;
    let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let roots = roots.map_err(|_| format!("SSL_CERT_FILE: {shown} is no PEM file"))?;
    if roots.is_empty() {
        return Err(format!("SSL_CERT_FILE: {shown} holds no certificate"));
    }
    Ok(roots)
}
