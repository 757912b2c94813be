//! The cryptography behind `https`: ring's, without what only a client with keys of its own needs.

use std::sync::Arc;

use rustls::Error;
use rustls::crypto::{CryptoProvider, KeyProvider, ring};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;

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
