//! The server of `hakmem metrics --listen`.
//!
//! Whoever reaches the port is a stranger. A connection carries one request without a body, and has
//! some seconds; where too many are open, or descriptors run out, the oldest gives way. Figures are
//! collected by one thread, at most once a second, for all that ask meanwhile; who asks while that
//! takes long gets the last ones. A page in a browser cannot read them by a name that leads here
//! (DNS rebinding): only names that are known are answered to.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus::TEXT_FORMAT;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::output::say;

/// Connections at one time.
const CONNECTIONS_MAX: usize = 64;
/// From its beginning to its end.
const CONNECTION_TIME: Duration = Duration::from_secs(20);
const HEADER_TIME: Duration = Duration::from_secs(5);
const HEADER_BYTES: usize = 16 << 10;
/// While descriptors have run out.
const PAUSE: Duration = Duration::from_millis(100);
/// Figures are as good as new for so long.
const FRESH: Duration = Duration::from_secs(1);
/// Who asks waits so long for new ones.
const PATIENCE: Duration = Duration::from_secs(8);

/// Where to listen: `HOST:PORT`, `[ADDRESS]:PORT`, `:PORT` for every address of this machine.
fn addresses(text: &str) -> Result<Vec<SocketAddr>> {
    let full = match text.strip_prefix(':') {
        Some(port) => format!("[::]:{port}"),
        None => text.to_string(),
    };
    let addresses = full.to_socket_addrs();
    let addresses = addresses
        .with_context(|| format!("{text} is no address to listen at: give HOST:PORT or :PORT"))?;
    Ok(addresses.collect())
}

/// Answers until it is stopped.
///
/// # Errors
/// The address cannot be used.
pub fn serve(
    collect: impl FnMut() -> Result<String> + Send + 'static,
    address: &str,
) -> Result<()> {
    let addresses = addresses(address)?;
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(&addresses[..]).await;
        let listener = listener.with_context(|| format!("cannot listen at {address}"))?;
        let served = Arc::new(Served {
            names: names(address),
            figures: Figures::collected_by(collect),
        });
        say(format_args!(
            "hakmem: metrics at http://{}/metrics",
            listener.local_addr()?
        ));
        accept(&listener, &served).await
    })
}

async fn accept(listener: &TcpListener, served: &Arc<Served>) -> ! {
    let mut connections: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = listener.accept().await;
        connections.retain(|connection| !connection.is_finished());
        if connections.len() >= CONNECTIONS_MAX || accepted.is_err() {
            if let Some(oldest) = connections.pop_front() {
                oldest.abort();
            }
        }
        match accepted {
            Ok((stream, _)) => {
                let connection = timeout(CONNECTION_TIME, converse(stream, served.clone()));
                connections.push_back(tokio::spawn(connection).abort_handle());
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// That somebody asks in a wrong way, or does not wait for the answer, is no error.
async fn converse(stream: TcpStream, served: Arc<Served>) {
    let served = &served;
    let answer = service_fn(|request| async move {
        let (status, kind, text) = served.answer(&request).await;
        let response = Response::builder().status(status);
        let response = response.header(CONTENT_TYPE, kind).body(text);
        Ok::<_, Infallible>(response.expect("a header"))
    });
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(HEADER_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

const INDEX: &str = "<!DOCTYPE html><title>hakmem</title><a href=\"/metrics\">Metrics</a>\n";
const PLAIN: &str = "text/plain";

/// What is answered, and to which names.
struct Served {
    names: Vec<String>,
    figures: Figures,
}

impl Served {
    async fn answer(&self, request: &Request<Incoming>) -> (StatusCode, &'static str, String) {
        let host = request.headers().get(HOST).map(|host| host.to_str());
        if !host.is_none_or(|host| host.is_ok_and(|host| is_known(&self.names, host))) {
            let text = "this server has another name: --listen NAME:PORT gives it one\n";
            return (StatusCode::MISDIRECTED_REQUEST, PLAIN, text.into());
        }
        if !request.body().is_end_stream() {
            let text = "no body is wanted\n";
            return (StatusCode::PAYLOAD_TOO_LARGE, PLAIN, text.into());
        }
        match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/metrics") => match self.figures.latest().await {
                Ok(text) => (StatusCode::OK, TEXT_FORMAT, text),
                Err(error) => (StatusCode::SERVICE_UNAVAILABLE, PLAIN, error + "\n"),
            },
            (&Method::GET | &Method::HEAD, "/") => (StatusCode::OK, "text/html", INDEX.into()),
            (&Method::GET | &Method::HEAD, _) => {
                (StatusCode::NOT_FOUND, PLAIN, "/metrics is here\n".into())
            }
            _ => {
                let text = "GET alone is served\n".into();
                (StatusCode::METHOD_NOT_ALLOWED, PLAIN, text)
            }
        }
    }
}

/// By which this server may be called besides addresses: that of the machine, and the one that was
/// given.
fn names(address: &str) -> Vec<String> {
    let machine = rustix::system::uname();
    let given = address.rsplit_once(':').map_or("", |(host, _)| host);
    let machine = machine.nodename().to_string_lossy().into_owned();
    vec!["localhost".into(), machine, given.into()]
}

fn is_known(names: &[String], host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    address.unwrap_or(name).parse::<IpAddr>().is_ok()
        || names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// When they were collected, and what they are, or why there are none.
type Collected = Option<(Instant, Result<String, String>)>;

/// The figures that were collected last.
struct Figures {
    latest: watch::Receiver<Collected>,
    wanted: SyncSender<()>,
}

impl Figures {
    fn collected_by(mut collect: impl FnMut() -> Result<String> + Send + 'static) -> Figures {
        let (collected, latest) = watch::channel(None);
        let (wanted, asked) = sync_channel(1);
        thread::spawn(move || {
            while asked.recv().is_ok() {
                let figures = collect().map_err(|error| format!("{error:#}"));
                collected.send_replace(Some((Instant::now(), figures)));
            }
        });
        Figures { latest, wanted }
    }

    async fn latest(&self) -> Result<String, String> {
        let mut latest = self.latest.clone();
        let known = latest.borrow_and_update().clone();
        let known = known.filter(|(at, _)| at.elapsed() < FRESH);
        let known = match known {
            Some(known) => Some(known),
            None => {
                // That somebody else asked already is as good.
                let _ = self.wanted.try_send(());
                let _ = timeout(PATIENCE, latest.changed()).await;
                latest.borrow().clone()
            }
        };
        known.map_or(Err("nothing was collected yet".into()), |(_, text)| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_to_listen() {
        let first = |text: &str| addresses(text).unwrap()[0].to_string();
        assert_eq!(first("127.0.0.1:9101"), "127.0.0.1:9101");
        assert_eq!(first(":9101"), "[::]:9101");
        assert_eq!(first("[::1]:9101"), "[::1]:9101");
        for text in ["", "9101", "nonsense:port", "::::"] {
            let error = addresses(text).unwrap_err().to_string();
            assert!(error.ends_with("give HOST:PORT or :PORT"), "{error}");
        }
    }

    #[test]
    fn who_is_called_here() {
        let names = names("node.example:9427");
        for host in [
            "127.0.0.1",
            "127.0.0.1:9427",
            "[::1]:9427",
            "[::1]",
            "localhost:1",
            "LocalHost",
            "node.example:9427",
        ] {
            assert!(is_known(&names, host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:9427",
            "127.0.0.1.evil.example",
        ] {
            assert!(!is_known(&names, host), "{host}");
        }
    }
}
