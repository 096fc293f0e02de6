//! What was asked for by name goes on when a process of that name is started anew.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};

use crate::fixtures::{compile, hakmem, scratch, skip};
use crate::inspect::Running;
use crate::metrics::{self, free_port, get, until};

const WAITER: &str = "
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    int main(void) {
        free(malloc(1000));
        puts(\"{}\");
        fflush(stdout);
        for (;;)
            pause();
    }";

/// No other test has one of this name.
const NAME: &str = "started-anew";

fn begin(directory: &Path) -> Option<Running> {
    let program = directory.join(NAME);
    if !program.exists() {
        compile("cc", WAITER, &["-O1", "-fno-builtin"], &program)?;
    }
    Some(Running::start(&program, &[], &[]))
}

/// The command, which writes to the file.
fn hakmem_to(file: &Path, words: &[&str]) -> metrics::Running {
    let child: Child = Command::new(hakmem().get_program())
        .args(words)
        .stdout(File::create(file).unwrap())
        .spawn()
        .unwrap();
    metrics::Running(child)
}

#[test]
fn a_name_leads_to_the_next_process() {
    let directory = scratch();
    let Some(first) = begin(directory.path()) else {
        return skip("C compiler");
    };
    let path = |name: &str| directory.path().join(name);
    let [lines, file, unused] = ["lines", "hakmem.prom", "unused"].map(path);
    let port = free_port();
    let _server = metrics::start(&["serve", NAME], port);
    let top = ["top", NAME, "--json", "--interval", "50ms"];
    let _top = hakmem_to(&lines, &top);
    let textfile = file.to_str().unwrap();
    let figures = [
        "metrics",
        NAME,
        "--interval",
        "50ms",
        "--textfile",
        textfile,
    ];
    let _metrics = hakmem_to(&unused, &figures);
    let text = |file: &Path| std::fs::read_to_string(file).unwrap_or_default();
    let shows = |pid: &str| {
        until(|| get(port, "/metrics").filter(|text| text.contains(&format!("{{pid=\"{pid}\""))));
        until(|| get(port, "/").filter(|text| text.contains(pid) && text.contains("200 OK")));
        until(|| {
            text(&lines)
                .contains(&format!("\"pid\":{pid},"))
                .then_some(())
        });
        until(|| {
            text(&file)
                .contains(&format!("{{pid=\"{pid}\""))
                .then_some(())
        });
    };
    let pid = first.pid();
    shows(&pid);
    drop(first);
    // Nothing stays of what has ended, and that is said.
    let none = format!("no process called {NAME}");
    until(|| get(port, "/metrics").filter(|text| text.contains(&none)));
    until(|| text(&file).contains("hakmem_processes 0").then_some(()));
    let second = begin(directory.path()).unwrap();
    assert_ne!(second.pid(), pid);
    shows(&second.pid());
}
