//! A proxy that takes CONNECT and relays the tunnel to one fixed server, whatever host was named.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub struct Relay {
    address: SocketAddr,
    targets: Arc<Mutex<Vec<String>>>,
}

impl Relay {
    /// Threads end with their connections, the acceptor with the process.
    pub fn start(server: SocketAddr) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let targets = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&targets);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || tunnel(stream, server, &seen));
            }
        });
        Relay { address, targets }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The hosts that were asked for.
    pub fn targets(&self) -> Vec<String> {
        self.targets.lock().unwrap().clone()
    }
}

fn tunnel(mut client: TcpStream, server: SocketAddr, seen: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match client.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.split(' ');
    assert_eq!(words.next(), Some("CONNECT"), "{head}");
    seen.lock().unwrap().push(words.next().unwrap_or_default().to_owned());
    let mut server = TcpStream::connect(server).unwrap();
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let (mut from_server, mut to_client) =
        (server.try_clone().unwrap(), client.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut client, &mut server);
    let _ = server.shutdown(Shutdown::Both);
}
