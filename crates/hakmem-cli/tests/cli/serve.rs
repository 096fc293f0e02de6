//! `hakmem serve` against those who ask: profilers, browsers, attackers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use flate2::read::GzDecoder;
use predicates::str::contains;

use crate::fixtures::{compile, hakmem, library, scratch, skip};
use crate::inspect;
use crate::metrics::{free_port, get, has, liar, listen, start, until, LIES};

/// Holds 1000 blocks of 10 000 bytes, and has freed as many; its name is what others would misread.
const HOLDER: &str = "
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/prctl.h>
    #include <unistd.h>
    void *volatile held[1000];
    __attribute__((noinline)) void hold_blocks(void) {
        for (int i = 0; i < 1000; i++)
            held[i] = malloc(10000);
    }
    __attribute__((noinline)) void drop_blocks(void) {
        for (int i = 0; i < 1000; i++) {
            void *volatile block = malloc(10000);
            free(block);
        }
    }
    int main(void) {
        prctl(PR_SET_NAME, \"<b>\\33[1mx\");
        hold_blocks();
        drop_blocks();
        puts(\"{}\");
        fflush(stdout);
        for (;;)
            pause();
    }";

fn holder(directory: &Path, sample_kib: &str) -> Option<inspect::Running> {
    let program = directory.join("holder");
    if !program.exists() {
        let flags = ["-g", "-O1", "-fno-builtin", "-fno-omit-frame-pointer"];
        compile("cc", HOLDER, &flags, &program)?;
    }
    let library = library();
    let options = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("HAKMEM_SAMPLE_KIB", sample_kib),
    ];
    Some(inspect::Running::start(&program, &[], &options))
}

const LATE: &str = "this takes long";

/// What Go's pprof says.
fn go_pprof(directory: &Path, url: &str) -> String {
    until(|| {
        let output = Command::new("go")
            .args(["tool", "pprof", "-top", url])
            .env("PPROF_TMPDIR", directory)
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (!said.contains(LATE)).then_some(said)
    })
}

/// The head and the body of an answer. On a machine that is busy a look may take long.
fn fetch(port: u16, path: &str) -> (String, Vec<u8>) {
    until(|| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok()?;
        let end = bytes.windows(4).position(|it| it == b"\r\n\r\n")? + 4;
        let body = bytes.split_off(end);
        let is_late = String::from_utf8_lossy(&body).contains(LATE);
        (!is_late).then(|| (String::from_utf8(bytes).unwrap(), body))
    })
}

/// The same as text.
fn ask(port: u16, path: &str) -> String {
    let (head, body) = fetch(port, path);
    head + &String::from_utf8_lossy(&body)
}

/// A field of a message: its number, the value, and the bytes if it has such.
type Field = (u64, u64, Vec<u8>);

/// The fields of a message of protobuf.
fn fields(mut bytes: &[u8]) -> Vec<Field> {
    fn number(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes);
        let value = number(&mut bytes);
        let mut inner = Vec::new();
        if key & 7 == 2 {
            let (now, rest) = bytes.split_at(value as usize);
            (inner, bytes) = (now.to_vec(), rest);
        }
        found.push((key >> 3, value, inner));
    }
    found
}

/// A profile as those see it who collect such.
struct Profile {
    fields: Vec<Field>,
    strings: Vec<String>,
}

impl Profile {
    fn fetch(port: u16, path: &str) -> Profile {
        let (head, body) = fetch(port, path);
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        assert!(head.contains("content-type: application/octet-stream"));
        let mut message = Vec::new();
        GzDecoder::new(&body[..]).read_to_end(&mut message).unwrap();
        let fields = fields(&message);
        let strings = fields.iter().filter(|field| field.0 == 6);
        let strings = strings.map(|field| String::from_utf8(field.2.clone()).unwrap());
        Profile {
            strings: strings.collect(),
            fields,
        }
    }

    fn all(&self, number: u64) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(move |field| field.0 == number)
    }

    fn number(&self, number: u64) -> u64 {
        self.all(number).next().map_or(0, |field| field.1)
    }

    /// The type and the unit of a value.
    fn value_type(&self, bytes: &[u8]) -> [&str; 2] {
        let fields = fields(bytes);
        [0, 1].map(|place| self.strings[fields[place].1 as usize].as_str())
    }

    /// The sums of the values of all samples.
    fn sums(&self) -> [u64; 4] {
        let mut sums = [0; 4];
        for (_, _, sample) in self.all(2) {
            let values = fields(sample).into_iter().find(|field| field.0 == 2);
            let values = values.unwrap().2;
            let mut numbers = Vec::new();
            let mut number = (0, 0);
            for byte in values {
                number.0 |= u64::from(byte & 0x7f) << number.1;
                number.1 += 7;
                if byte < 0x80 {
                    numbers.push(std::mem::take(&mut number).0);
                }
            }
            for (sum, value) in sums.iter_mut().zip(numbers) {
                *sum += value;
            }
        }
        sums
    }
}

#[test]
fn profiles_are_what_continuous_profilers_collect() {
    let directory = scratch();
    let Some(program) = holder(directory.path(), "16") else {
        return skip("C compiler");
    };
    let port = free_port();
    let _server = start(&["serve", &program.pid()], port);
    for (name, first) in [("heap", "inuse_space"), ("allocs", "alloc_space")] {
        let profile = Profile::fetch(port, &format!("/debug/pprof/{name}"));
        let types: Vec<_> = profile.all(1).map(|it| profile.value_type(&it.2)).collect();
        let expected = [
            ["alloc_objects", "count"],
            ["alloc_space", "bytes"],
            ["inuse_objects", "count"],
            ["inuse_space", "bytes"],
        ];
        assert_eq!(types, expected);
        let period = profile.all(11).next().unwrap();
        assert_eq!(profile.value_type(&period.2), ["space", "bytes"]);
        assert_eq!(profile.number(12), 16 << 10);
        assert_eq!(profile.strings[profile.number(14) as usize], first);
        let [.., allocated, _, live] = profile.sums();
        assert!((7_000_000..14_000_000).contains(&live), "{live}");
        assert!((14_000_000..28_000_000).contains(&allocated), "{allocated}");
        let has = |name: &str| profile.strings.iter().any(|it| it == name);
        assert!(has("hold_blocks") && has("main"), "{:?}", profile.strings);
        // Where the files lie in the process is told to nobody.
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.pid())).unwrap();
        for (_, _, mapping) in profile.all(3) {
            let start = fields(mapping).into_iter().find(|it| it.0 == 2).unwrap().1;
            assert!(!maps.contains(&format!("{start:x}-")), "{start:x}");
        }
    }
    if !has("go") {
        return skip("Go");
    }
    let url = format!("http://127.0.0.1:{port}/debug/pprof");
    for (name, kind) in [("heap", "inuse_space"), ("allocs", "alloc_space")] {
        let said = go_pprof(directory.path(), &format!("{url}/{name}"));
        if !said.contains("127.0.0.1") {
            return skip("go tool pprof");
        }
        assert!(said.contains(&format!("Type: {kind}")), "{said}");
        assert!(said.contains("hold_blocks"), "{said}");
    }
    let said = go_pprof(directory.path(), &format!("{url}/profile"));
    assert!(said.contains("here are /metrics"), "{said}");
}

#[test]
fn of_several_processes_one_is_named() {
    let directory = scratch();
    let Some(program) = holder(directory.path(), "16") else {
        return skip("C compiler");
    };
    let silent = holder(directory.path(), "0").unwrap();
    let (all, one) = (free_port(), free_port());
    let _server = start(&["serve", "all"], all);
    let refused = ask(all, "/debug/pprof/heap");
    assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
    for pid in [program.pid(), silent.pid()] {
        assert!(refused.contains(&format!("?pid={pid}  <b>")), "{refused}");
    }
    assert!(!refused.contains('\u{1b}'), "{refused}");
    let named = format!("/debug/pprof/heap?pid={}", program.pid());
    assert!(Profile::fetch(all, &named).sums()[3] > 1 << 20);
    let named = format!("/debug/pprof/allocs?pid={}", silent.pid());
    let refused = ask(all, &named);
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.contains("HAKMEM_SAMPLE_KIB=512"), "{refused}");
    // Nobody, one that hakmem does not serve, and another one than that which is served.
    for pid in ["2147483647".into(), std::process::id().to_string()] {
        let refused = ask(all, &format!("/?pid={pid}"));
        assert!(refused.starts_with("HTTP/1.1 404"), "{refused}");
    }
    let _server = start(&["serve", &program.pid()], one);
    assert!(ask(one, &named).starts_with("HTTP/1.1 404"));
    hakmem()
        .args(["serve", &std::process::id().to_string()])
        .args(["--listen", "127.0.0.1:0"])
        .assert()
        .code(2)
        .stderr(contains("hakmem does not serve"));
}

#[test]
fn a_page_shows_the_curve_and_who_holds_memory() {
    let directory = scratch();
    let Some(program) = holder(directory.path(), "16") else {
        return skip("C compiler");
    };
    let port = free_port();
    let _server = listen(port);
    let named = format!("/?pid={}", program.pid());
    let pages = until(|| {
        let pages = ["/", &named].map(|path| ask(port, path));
        // Two looks make a curve.
        pages[1].contains("L1000.0 ").then_some(pages)
    });
    for page in &pages {
        assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
        assert!(page.contains("content-security-policy: default-src 'none';"));
        assert!(page.contains("&lt;b&gt;"), "{page}");
        for tag in ["<script", "<b>\u{1b}", "<link", "<img", "src=", "url("] {
            assert!(!page.contains(tag), "{tag} in {page}");
        }
    }
    assert!(pages[1].contains("hold_blocks"), "{}", pages[1]);
}

#[test]
fn processes_that_lie_are_answered_for() {
    let directory = scratch();
    let port = free_port();
    let _server = listen(port);
    for lie in LIES {
        let Some(liar) = liar(directory.path(), lie) else {
            return skip("C compiler");
        };
        let pid = liar.0.id();
        for path in ["/?", "/debug/pprof/heap?", "/debug/pprof/allocs?"] {
            let answer = ask(port, &format!("{path}pid={pid}"));
            let status = answer.split(' ').nth(1).unwrap();
            assert!(["200", "404", "503"].contains(&status), "{lie}: {answer}");
        }
        let metrics = until(|| get(port, "/metrics").filter(|text| text.contains("200 OK")));
        assert!(metrics.contains("hakmem_processes"), "{lie}: {metrics}");
    }
}

/// The beginning of what is answered; empty: nothing in time.
fn answer(stream: &mut TcpStream) -> String {
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut text = [0; 100];
    let length = stream.read(&mut text).unwrap_or(0);
    String::from_utf8_lossy(&text[..length]).into()
}

#[test]
fn a_server_survives_who_attacks_it() {
    let port = free_port();
    let server = listen(port);
    let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
    let serves = || get(port, "/metrics").is_some_and(|text| text.contains("hakmem_processes"));
    // Bodies that never come.
    for body in [
        "Content-Length: 2000",
        "Content-Length: 4611686018427387904",
        "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff",
    ] {
        for method in ["GET", "POST"] {
            let mut stream = connect();
            let head = format!("{method} /metrics HTTP/1.1\r\nHost: localhost\r\n{body}\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            let text = answer(&mut stream);
            assert!(text.starts_with("HTTP/1.1 4"), "{method} {body}: {text}");
            assert!(serves());
        }
    }
    // A name that leads here, wherever it stands.
    for head in [
        "GET /metrics HTTP/1.1\r\nHost: evil.example",
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example",
        "GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost",
    ] {
        let mut stream = connect();
        let head = format!("{head}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        assert!(answer(&mut stream).contains("421"), "{head}");
    }
    // A header without end.
    let mut stream = connect();
    let line = vec![b'a'; 1 << 20];
    let mut sent = stream.write_all(b"GET / HTTP/1.1\r\nX: ").is_ok();
    for _ in 0..64 {
        sent = sent && stream.write_all(&line).is_ok();
    }
    assert!(!sent);
    // Answers that nobody reads.
    let mut pipeline = connect();
    pipeline
        .set_write_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    for _ in 0..200 {
        if pipeline.write_all(&request).is_err() {
            break;
        }
    }
    assert!(serves());
    // More connections than there are descriptors.
    let silent: Vec<TcpStream> = (0..200).map(|_| connect()).collect();
    until(|| serves().then_some(()));
    drop(silent);
    until(|| serves().then_some(()));
    drop(server);
}
