//! The server: `hakmem serve`, and `hakmem metrics --listen`.
//!
//! Whoever reaches the port is a stranger. A connection carries one request without a body, and has
//! some seconds; where too many are open, or descriptors run out, the oldest gives way. One thread
//! looks at processes, for each question at most once a second, for all that ask meanwhile; who
//! asks while that takes long gets the last answer. A page in a browser cannot read them by a name
//! that leads here (DNS rebinding): only names that are known are answered to.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{HeaderValue, CONTENT_TYPE, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{spawn_blocking, AbortHandle};
use tokio::time::{sleep, timeout};

use super::metrics::Collector;
use super::peaks::Peaks;
use super::served::{Answer, Ask, Served};
use crate::cli::ServeArguments;
use crate::output::say;

/// Connections at one time.
const CONNECTIONS_MAX: usize = 64;
/// From its beginning to its end.
const CONNECTION_TIME: Duration = Duration::from_secs(20);
const HEADER_TIME: Duration = Duration::from_secs(5);
const HEADER_BYTES: usize = 16 << 10;
/// While descriptors have run out.
const PAUSE: Duration = Duration::from_millis(100);
/// An answer is as good as new for so long.
const FRESH: Duration = Duration::from_secs(1);
/// Who asks waits so long for a new one.
const PATIENCE: Duration = Duration::from_secs(8);
/// And then gets one that is no older than this.
const KEPT: Duration = Duration::from_secs(60);
/// So many bytes of answers are kept, of which each counts as so many at least.
const KEPT_BYTES: usize = 64 << 20;
const KEPT_BYTES_EACH: usize = 16 << 10;

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
/// The process cannot be looked at, or the address not be used.
pub fn serve(arguments: &ServeArguments) -> Result<ExitCode> {
    let collector = Collector::of(&arguments.target)?;
    if let Some(directory) = &arguments.peaks {
        Peaks::begin(Collector::of(&arguments.target)?, directory)?;
    }
    serve_at(&arguments.listen, collector)
}

/// The same of processes that are known.
///
/// # Errors
/// The process cannot be looked at, or the address not be used.
pub fn serve_at(address: &str, collector: Collector) -> Result<ExitCode> {
    let served = Served::new(collector)?;
    let addresses = addresses(address)?;
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(&addresses[..]).await;
        let listener = listener.with_context(|| format!("cannot listen at {address}"))?;
        let server = Arc::new(Server {
            names: names(address),
            answers: Answers::from(served),
        });
        say(format_args!(
            "hakmem: listening at http://{}",
            listener.local_addr()?
        ));
        accept(&listener, &server).await
    })
}

async fn accept(listener: &TcpListener, server: &Arc<Server>) -> ! {
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
                let connection = timeout(CONNECTION_TIME, converse(stream, server.clone()));
                connections.push_back(tokio::spawn(connection).abort_handle());
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// That somebody asks in a wrong way, or does not wait for the answer, is no error.
async fn converse(stream: TcpStream, server: Arc<Server>) {
    let server = &server;
    let answer = service_fn(|request| async move {
        Ok::<_, Infallible>(response(server.answer(&request).await))
    });
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(HEADER_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

/// All answers are of this moment, and a page of them has no scripts and is part of no other one.
const HEADERS: [(&str, &str); 5] = [
    ("cache-control", "no-store"),
    (
        "content-security-policy",
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
    ),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-content-type-options", "nosniff"),
    // By which pprof shows people what an error says.
    ("x-go-pprof", "1"),
];
/// A page asks again after so many seconds.
const REFRESH: &str = "5";

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if answer.content_type.starts_with("text/html") {
        headers.insert("refresh", HeaderValue::from_static(REFRESH));
    }
    response
}

/// Who answers, and to which names.
struct Server {
    names: Vec<String>,
    answers: Arc<Answers>,
}

impl Server {
    async fn answer(&self, request: &Request<Incoming>) -> Answer {
        let refusal = |status, text| Answer::refusal(status, text);
        let uri = request.uri();
        let named = request.headers().get_all(HOST).into_iter();
        let named = named.map(|host| host.to_str().ok());
        let mut named = named.chain(uri.authority().map(|it| Some(it.as_str())));
        if !named.all(|host| host.is_some_and(|host| is_known(&self.names, host))) {
            let text = "this server has another name: --listen NAME:PORT gives it one\n";
            return refusal(StatusCode::MISDIRECTED_REQUEST, text);
        }
        if !request.body().is_end_stream() {
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, "no body is wanted\n");
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            return refusal(StatusCode::METHOD_NOT_ALLOWED, "GET alone is served\n");
        }
        match Ask::parse(uri.path(), uri.query().unwrap_or_default()) {
            Ok(ask) => self.answers.to(ask).await,
            Err(refusal) => refusal,
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

/// Answers that were given, and who finds new ones, one at a time.
struct Answers {
    given: Mutex<HashMap<Ask, (Instant, Answer)>>,
    served: Arc<tokio::sync::Mutex<Served>>,
}

impl Answers {
    fn from(served: Served) -> Arc<Answers> {
        Arc::new(Answers {
            given: Mutex::default(),
            served: Arc::new(tokio::sync::Mutex::new(served)),
        })
    }

    /// A new answer, or the last one if that takes long.
    async fn to(self: &Arc<Self>, ask: Ask) -> Answer {
        if let Ok(answer) = timeout(PATIENCE, self.new_one(ask)).await {
            return answer;
        }
        let late = "this takes long: ask again in some seconds\n";
        let late = || Answer::refusal(StatusCode::SERVICE_UNAVAILABLE, late);
        self.given(ask, KEPT).unwrap_or_else(late)
    }

    async fn new_one(self: &Arc<Self>, ask: Ask) -> Answer {
        // That somebody else asked just now is as good.
        if let Some(answer) = self.given(ask, FRESH) {
            return answer;
        }
        let mut served = self.served.clone().lock_owned().await;
        if let Some(answer) = self.given(ask, FRESH) {
            return answer;
        }
        let answers = self.clone();
        let found = spawn_blocking(move || {
            let answer = served.answer(ask);
            answers.keep(ask, &answer);
            answer
        });
        let failed = |_| Answer::refusal(StatusCode::INTERNAL_SERVER_ERROR, "a defect of hakmem\n");
        found.await.unwrap_or_else(failed)
    }

    fn given(&self, ask: Ask, age: Duration) -> Option<Answer> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, answer) = given.get(&ask)?;
        (at.elapsed() < age).then(|| answer.clone())
    }

    fn keep(&self, ask: Ask, answer: &Answer) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.retain(|_, (at, _)| at.elapsed() < KEPT);
        let kept = given.values().map(|(_, it)| it.body.len());
        let kept: usize = kept.map(|length| length.max(KEPT_BYTES_EACH)).sum();
        if kept >= KEPT_BYTES {
            given.clear();
        }
        given.insert(ask, (Instant::now(), answer.clone()));
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
