//! `hakmem metrics` against the programs that read it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use predicates::prelude::*;
use predicates::str::contains;

use crate::fixtures::{compile, hakmem, library, scratch, skip};

/// A process that ends with this.
pub struct Running(pub Child);

impl Running {
    /// A program that has said that it is ready.
    pub fn ready(mut child: Child) -> Running {
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Running(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program on hakmem that waits.
fn sleeper() -> Running {
    let child = Command::new("/usr/bin/python3")
        .args([
            "-c",
            "import sys; print('ready', flush=True); sys.stdin.read()",
        ])
        .env("LD_PRELOAD", library())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    Running::ready(child)
}

pub fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn promtool_has_nothing_to_say() {
    let program = sleeper();
    let directory = scratch();
    let file = directory.path().join("hakmem.prom");
    let pid = program.0.id().to_string();
    hakmem()
        .args(["metrics", &pid, "--textfile"])
        .arg(&file)
        .assert()
        .code(0);
    let text = std::fs::read_to_string(&file).unwrap();
    let info = text
        .lines()
        .find(|line| line.starts_with("hakmem_process_info{cgroup="));
    let info = info.unwrap_or_else(|| panic!("{text}"));
    for label in [
        "cgroup=\"/",
        &format!("pid=\"{pid}\""),
        "start_time=\"1",
        "state=\"sleeping\"",
    ] {
        assert!(info.contains(label), "{info}");
    }
    let printed = hakmem().arg("metrics").output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(
        printed.contains(&format!("hakmem_process_resident_bytes{{pid=\"{pid}\"")),
        "{printed}"
    );
    if !has("promtool") {
        return skip("promtool");
    }
    for text in [text, printed] {
        let mut promtool = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        promtool
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let output = promtool.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(output.status.success() && said.trim().is_empty(), "{said}");
    }
}

pub fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A server of all processes, listening at the port, with few descriptors.
pub fn listen(port: u16) -> Running {
    start(&["serve", "all"], port)
}

/// The command, listening at the port, with few descriptors.
pub fn start(words: &[&str], port: u16) -> Running {
    let address = format!("127.0.0.1:{port}");
    let child = Command::new("sh")
        .args(["-c", "ulimit -n 40; exec \"$@\"", "sh"])
        .arg(hakmem().get_program())
        .args(words)
        .args(["--listen", &address])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = Running(child);
    until(|| get(port, "/").filter(|text| text.contains("HTTP/1.1 ")));
    running
}

pub fn until<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(250), "waited in vain");
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_server_answers_who_asks() {
    let program = sleeper();
    let port = free_port();
    let _server = start(&["metrics"], port);
    let text = get(port, "/metrics").unwrap();
    assert!(text.contains("text/plain; version=0.0.4"), "{text}");
    assert!(
        text.contains(&format!("pid=\"{}\"", program.0.id())),
        "{text}"
    );
    assert!(get(port, "/nothing").unwrap().contains("404"));
    let address = format!("127.0.0.1:{port}");
    hakmem()
        .args(["metrics", "--listen", &address])
        .assert()
        .code(2)
        .stderr(contains("cannot listen at").and(contains("in use")));
}

#[test]
fn prometheus_collects_it() {
    if !has("prometheus") {
        return skip("prometheus");
    }
    let program = sleeper();
    let directory = scratch();
    let (port, own) = (free_port(), free_port());
    let _server = listen(port);
    let configuration = directory.path().join("prometheus.yml");
    let text = format!(
        "global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\nscrape_configs:\n  \
         - job_name: hakmem\n    static_configs:\n      - targets: ['127.0.0.1:{port}']\n"
    );
    std::fs::write(&configuration, text).unwrap();
    let prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}", configuration.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            directory.path().display()
        ))
        .arg(format!("--web.listen-address=127.0.0.1:{own}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _prometheus = Running(prometheus);
    let query = format!(
        "/api/v1/query?query=hakmem_mallocs_total{{pid=\"{}\"}}",
        program.0.id()
    );
    let query = query
        .replace('{', "%7B")
        .replace('}', "%7D")
        .replace('"', "%22");
    let answer = until(|| get(own, &query).filter(|text| text.contains("\"tier\":\"tiny\"")));
    assert!(answer.contains("\"status\":\"success\""), "{answer}");
    let up = get(own, "/api/v1/query?query=up").unwrap();
    assert!(up.contains(",\"1\"]"), "{up}");
}

#[test]
fn figures_of_a_process_that_has_ended_do_not_stay() {
    let program = sleeper();
    let directory = scratch();
    let file = directory.path().join("hakmem.prom");
    let pid = program.0.id().to_string();
    let mut writer = Command::new(hakmem().get_program())
        .args(["metrics", &pid, "--interval", "50ms", "--textfile"])
        .arg(&file)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let text = || std::fs::read_to_string(&file).unwrap_or_default();
    until(|| text().contains("hakmem_processes 1").then_some(()));
    drop(program);
    assert_eq!(writer.wait().unwrap().code(), Some(2));
    assert!(text().contains("hakmem_processes 0"), "{}", text());
    assert!(!text().contains(&pid), "{}", text());
}

pub const LIES: [&str; 8] = [
    "product",
    "sums",
    "leaves",
    "heaps",
    "magazines",
    "histograms",
    "big",
    "words",
];

/// A program that tells a lie.
pub fn liar(directory: &Path, lie: &str) -> Option<Running> {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core");
    let include = format!("-I{}", core.display());
    let program = directory.join("liar");
    if !program.exists() {
        compile("cc", include_str!("liar.c"), &["-O1", &include], &program)?;
    }
    let child = Command::new(&program)
        .arg(lie)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    Some(Running::ready(child))
}

#[test]
fn a_process_that_lies_stops_nobody() {
    let directory = scratch();
    let program = sleeper();
    let mut liars = Vec::new();
    for lie in LIES {
        let Some(liar) = liar(directory.path(), lie) else {
            return skip("C compiler");
        };
        // As much memory as it may take, with its own code.
        for option in ["--json", "--leaks"] {
            let limited = Command::new("sh")
                .args(["-c", "ulimit -v 500000; exec \"$@\"", "sh"])
                .arg(hakmem().get_program())
                .args(["inspect", &liar.0.id().to_string(), option])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&limited.stderr);
            let refused = said.contains("cannot be so") && said.lines().count() == 1;
            assert!(limited.status.success() || refused, "{lie}: {said}");
        }
        liars.push(liar);
    }
    let printed = hakmem().arg("metrics").output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let pid = program.0.id();
    let shown = format!("hakmem_process_resident_bytes{{pid=\"{pid}\"");
    assert!(printed.contains(&shown), "{printed}");
    let unreadable = printed
        .lines()
        .find_map(|line| line.strip_prefix("hakmem_unreadable_processes "));
    let unreadable: f64 = unreadable.unwrap().parse().unwrap();
    assert!(unreadable >= 2.0, "{printed}");
}
