//! A small HTTP server whose answers a test writes by hand: for servers that cannot be had, and for faults.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What a client asked.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub method: String,
    /// With the query.
    pub target: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Asked {
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or("")
    }
}

/// What is answered.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Before anything is sent.
    pub pause: Duration,
    /// The body ends after so many bytes, whatever its length says.
    pub cut_after: Option<usize>,
    /// The body is sent so many times over.
    pub times: usize,
}

impl Reply {
    pub fn json(body: impl Into<String>) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { status: 200, headers, body: body.into().into_bytes(), times: 1, ..Self::default() }
    }

    pub fn status(status: u16, body: &str) -> Self {
        Self { status, ..Self::json(body) }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A running server; it ends with the test.
pub struct Served {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    scheme: &'static str,
}

type Handler = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

impl Served {
    pub fn start(handler: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::serve(Arc::new(handler), None)
    }

    /// Over TLS, with a certificate that nobody vouches for; gives it as PEM, too.
    pub fn start_self_signed(handler: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> (Self, String) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        (Self::serve(Arc::new(handler), Some(Arc::new(config))), made.cert.pem())
    }

    fn serve(handler: Handler, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let scheme = if tls.is_some() { "https" } else { "http" };
        let served = Self { address, asked: Arc::clone(&asked), scheme };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (handler, asked, tls) = (Arc::clone(&handler), Arc::clone(&asked), tls.clone());
                thread::spawn(move || match tls {
                    None => drop(converse(stream, &handler, &asked)),
                    Some(config) => {
                        let connection = ServerConnection::new(config).unwrap();
                        drop(converse(StreamOwned::new(connection, stream), &handler, &asked));
                    }
                });
            }
        });
        served
    }

    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Everything that was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// One request and its answer; the connection ends with it.
fn converse(stream: impl Read + Write, handler: &Handler, all: &Mutex<Vec<Asked>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut asked = Asked {
        method: words.next().unwrap_or_default(),
        target: words.next().unwrap_or_default(),
        ..Asked::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        asked.headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = asked.headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    asked.body = String::from_utf8_lossy(&body).into_owned();
    all.lock().unwrap().push(asked.clone());
    let reply = handler(&asked);
    thread::sleep(reply.pause);
    let times = reply.times.max(1);
    let mut head = format!(
        "HTTP/1.1 {} Status\r\nconnection: close\r\ncontent-length: {}\r\n",
        reply.status,
        reply.body.len() * times
    );
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let stream = reader.get_mut();
    stream.write_all(head.as_bytes())?;
    match reply.cut_after {
        Some(count) => stream.write_all(&reply.body[..count.min(reply.body.len())])?,
        None => {
            for _ in 0..times {
                stream.write_all(&reply.body)?;
            }
        }
    }
    stream.flush()
}

/// An address where nobody listens.
pub fn nobody() -> String {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).unwrap();
    assert!(TcpStream::connect(address).is_err());
    format!("http://{address}")
}
