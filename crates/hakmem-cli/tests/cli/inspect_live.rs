//! `hakmem top`, and what `hakmem inspect` tells of options that measure: slow paths, call sites.

use std::io::{BufRead, BufReader};

use hakmem_cli::inspection::screen::{draw, Below, View};
use hakmem_cli::inspection::watch::Watch;
use predicates::prelude::*;
use predicates::str::contains;
use ratatui::backend::TestBackend;
use ratatui::Terminal;
use serde_json::Value;

use crate::fixtures::{compile, hakmem, library, measuring_library, scratch, skip};
use crate::inspect::{inspect, preloaded, Running};

#[test]
fn slow_paths_and_call_sites_are_told_from_outside() {
    let directory = scratch();
    let Some(program) = preloaded(directory.path()) else {
        return skip("C compiler");
    };
    let measuring = measuring_library();
    let measuring = measuring.to_str().unwrap();
    let options = [("LD_PRELOAD", measuring), ("HAKMEM_SAMPLE_KIB", "16")];
    let running = Running::start(&program, &["4"], &options);
    let report = inspect(&running.pid());
    let spans = report["cycles"]["spans"].as_array().unwrap();
    let of_library = &running.statistics["cycles"];
    let mut calls = 0;
    for span in spans {
        let (side, kind) = (
            span["side"].as_str().unwrap(),
            span["kind"].as_str().unwrap(),
        );
        let theirs = &of_library[side][kind];
        // What the library counted before it wrote its statistics; nothing happened since.
        assert_eq!(span["count"], theirs["count"], "{side} {kind}");
        assert_eq!(span["histogram"], theirs["histogram"], "{side} {kind}");
        calls += u64::from(kind == "call") * span["count"].as_u64().unwrap();
    }
    assert!(calls > 0);
    let rate = report["cycles"]["ticks_per_ms"].as_f64().unwrap();
    let theirs = of_library["ticks_per_ms"].as_f64().unwrap();
    assert!((rate / theirs - 1.0).abs() < 0.05, "{rate} {theirs}");
    let owner = report["sites"][0]["owner"].as_str().unwrap();
    assert!(["main", "work"].contains(&owner), "{owner}");
    let live = report["sites"][0]["live_bytes"].as_u64().unwrap();
    assert!(live > 10 << 20, "{live}");
    hakmem()
        .args(["top", &running.pid(), "--once", "--interval", "50ms"])
        .assert()
        .code(0)
        .stdout(contains("Slow paths").and(contains("Who holds it")));
    let profile = directory.path().join("live.hakprof");
    hakmem()
        .args(["inspect", &running.pid(), "--profile"])
        .arg(&profile)
        .assert()
        .code(0);
    hakmem()
        .arg("report")
        .arg(&profile)
        .assert()
        .code(0)
        .stdout(contains("main"));
    let silent = Running::start(&program, &["1"], &[]);
    let report = inspect(&silent.pid());
    assert!(report.get("cycles").is_none() && report["sites"] == Value::Array(Vec::new()));
    hakmem()
        .args(["inspect", &silent.pid(), "--profile", "-"])
        .assert()
        .code(2)
        .stderr(contains("HAKMEM_SAMPLE_KIB"));
}

/// Loses 1000 blocks of 3000 bytes and a list of 500, keeps a list of 1000, and a big one by its
/// middle. What malloc left on the stack when it moved batches of blocks leads to none.
const LOSES: &str = "
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    struct node { struct node *next; char rest[2900]; };
    struct node *list;
    char *middle;
    __attribute__((noinline)) void keep(void) {
        for (int i = 0; i < 1000; i++) {
            struct node *node = malloc(sizeof *node);
            node->next = list;
            list = node;
        }
        middle = (char *)malloc(5 << 20) + (2 << 20);
    }
    __attribute__((noinline)) void lose(void) {
        for (int i = 0; i < 1000; i++) {
            char *volatile block = malloc(3000);
            *block = 1;
            block = 0;
        }
    }
    __attribute__((noinline)) void lose_list(void) {
        struct node *head = 0;
        for (int i = 0; i < 500; i++) {
            struct node *node = malloc(200);
            node->next = head;
            head = node;
        }
    }
    int main(void) {
        keep();
        lose();
        lose_list();
        puts(\"ready\");
        fflush(stdout);
        pause();
    }";

#[test]
fn lost_blocks_are_told_from_those_that_are_kept() {
    let directory = scratch();
    let program = directory.path().join("loses");
    if compile("cc", LOSES, &["-g", "-O1", "-fno-builtin"], &program).is_none() {
        return skip("C compiler");
    }
    let mut running = std::process::Command::new(&program)
        .env("LD_PRELOAD", library())
        .env("HAKMEM_SAMPLE_KIB", "4")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let mut output = BufReader::new(running.stdout.take().unwrap());
    output.read_line(&mut ready).unwrap();
    let looked = hakmem()
        .args(["inspect", &running.id().to_string(), "--leaks", "--json"])
        .output()
        .unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(looked.status.code(), Some(1), "{looked:?}");
    let value: Value = serde_json::from_slice(&looked.stdout).unwrap();
    let process = &value["processes"][0];
    assert_eq!(process["reachability"], "unreachable");
    let lost = process["lost_blocks"].as_u64().unwrap();
    // A few may still be pointed to by what is left on the stack.
    assert!((1495..=1502).contains(&lost), "{process}");
    assert!(process["live_blocks"].as_u64().unwrap() >= 2001);
    let sites = process["sites"].as_array().unwrap();
    for site in sites {
        let function = &site["stack"][0]["function"];
        assert!(function == "lose" || function == "lose_list", "{process}");
        let part = |name: &str| site[name].as_f64().unwrap();
        assert!(part("error_bytes") > 0.0 && part("error_bytes") < part("bytes"));
    }
    assert_eq!(sites.len(), 2);
}

/// Names come from the files that the process sees, as in a container.
#[test]
fn a_process_with_other_files_is_told_by_name() {
    let directory = scratch();
    let apart = |words: &[&str]| {
        let status = std::process::Command::new("unshare").args(words).status();
        status.is_ok_and(|status| status.success())
    };
    let Some(program) = preloaded(directory.path()) else {
        return skip("C compiler");
    };
    let (hidden, seen) = (
        directory.path().join("hidden"),
        directory.path().join("seen"),
    );
    for place in [&hidden, &seen] {
        std::fs::create_dir(place).unwrap();
    }
    std::fs::rename(program, hidden.join("program")).unwrap();
    let mount = format!("mount --bind {} {}", hidden.display(), seen.display());
    if !apart(&["-m", "sh", "-c", &mount]) {
        return skip("right to mount");
    }
    let script = format!("{mount} && exec {}/program 4", seen.display());
    let options = [("HAKMEM_SAMPLE_KIB", "16")];
    let running = Running::start("unshare".as_ref(), &["-m", "sh", "-c", &script], &options);
    let report = inspect(&running.pid());
    let owner = report["sites"][0]["owner"].as_str().unwrap();
    assert!(["main", "work"].contains(&owner), "{owner}");
}

#[test]
fn top_tells_rates_in_a_pipe() {
    let directory = scratch();
    let Some(program) = preloaded(directory.path()) else {
        return skip("C compiler");
    };
    let running = Running::start(&program, &["4"], &[]);
    hakmem()
        .args(["top", &running.pid(), "--once", "--interval", "50ms"])
        .assert()
        .code(0)
        .stdout(contains("In the last ").and(contains("What hakmem keeps")));
    let mut top = std::process::Command::new(hakmem().get_program())
        .args(["top", &running.pid(), "--json", "--interval", "100ms"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut looks: Vec<_> = lines.by_ref().take(2).collect();
    assert_eq!(looks.len(), 2);
    // It ends with the process.
    drop(running);
    looks.extend(lines);
    assert_eq!(top.wait().unwrap().code(), Some(0));
    for line in looks {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert_eq!(line["rates"]["mallocs_per_second"], 0.0);
        assert!(line["rss_bytes"].as_u64().unwrap() > 0);
    }
}

/// On no screen is a figure cut, which would be another one, or a key missing that there is room
/// for.
#[test]
fn top_shows_whole_figures_on_every_screen() {
    let directory = scratch();
    let Some(program) = preloaded(directory.path()) else {
        return skip("C compiler");
    };
    let running = Running::start(&program, &["4"], &[("HAKMEM_SAMPLE_KIB", "16")]);
    let look = Watch::of(&running.pid()).and_then(|mut watch| watch.look());
    let mut view = View::new(look.unwrap());
    for part in &mut view.look.report.parts {
        part.resident_bytes = 1000 << 20;
    }
    for tier in &mut view.look.report.statistics.tiers {
        (tier.live_bytes, tier.cached_bytes) = (1000 << 20, 1000 << 20);
    }
    for below in [Below::Nothing, Below::Sites, Below::Map] {
        view.below = below;
        for (width, height) in [(20, 5), (30, 20), (40, 24), (50, 50), (80, 24), (120, 60)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &view)).unwrap();
            let screen = terminal.backend().to_string();
            let figures = screen
                .split_whitespace()
                .filter(|word| word.starts_with("000"));
            assert_eq!(figures.count(), 0, "{screen}");
            if width >= 30 {
                let quantities = screen.matches("1000 MiB").count();
                assert_eq!(screen.matches("000 M").count(), quantities, "{screen}");
                assert!(quantities > 0, "{screen}");
            }
            if width >= 50 {
                assert!(
                    screen.contains("q quit") && screen.contains("+/- every"),
                    "{screen}"
                );
            }
        }
    }
}

#[test]
fn files_of_other_kinds_are_told_as_such() {
    let directory = scratch();
    for (head, message) in [
        (&b"\x28\xb5\x2f\xfd"[..], "it is compressed: unpack it"),
        (b"hakprof\n", "`hakmem report` shows it"),
    ] {
        let path = directory.path().join("file");
        std::fs::write(&path, [head, &[0; 200]].concat()).unwrap();
        hakmem()
            .arg("inspect")
            .arg(&path)
            .assert()
            .code(2)
            .stderr(contains(message));
    }
}
