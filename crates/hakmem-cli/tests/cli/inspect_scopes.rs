//! What `hakmem inspect` says of scopes.

use crate::fixtures::{compile, hakmem, library, scratch, skip};
use crate::inspect::{inspect, resident, Running};

/// A program that holds 40 blocks of 1 MiB less 100 bytes, one of 5 MiB, and 10,000 small ones in a
/// scope.
const SCOPED: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    struct hakmem_scope;
    struct hakmem_scope *hakmem_scope_create(const char *, size_t, void *, void *);
    int hakmem_scope_enter(struct hakmem_scope *);
    void hakmem_scope_leave(struct hakmem_scope *);
    void hakmem_scope_destroy(struct hakmem_scope *);
    static void take(size_t size) { memset(malloc(size), 1, size); }
    int main(void) {
        struct hakmem_scope *ended = hakmem_scope_create("ended", 0, NULL, NULL);
        hakmem_scope_enter(ended);
        take(100);
        hakmem_scope_leave(ended);
        hakmem_scope_destroy(ended);
        hakmem_scope_enter(hakmem_scope_create("part", 64 << 20, NULL, NULL));
        for (int i = 0; i < 40; i++)
            take((1 << 20) - 100);
        take(5 << 20);
        for (int i = 0; i < 10000; i++)
            take(100);
        write(1, "{}\n", 3);
        char c;
        return (int)read(0, &c, 1);
    }"#;

fn printed_by(arguments: &[&str]) -> String {
    let output = hakmem().args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_scopes_hold_is_a_part() {
    let directory = scratch();
    let program = directory.path().join("scoped");
    let library = library();
    let flags = ["-O1", "-fno-builtin", library.to_str().unwrap()];
    let Some(()) = compile("cc", SCOPED, &flags, &program) else {
        return skip("C compiler");
    };
    let running = Running::start(&program, &[], &[]);
    let report = inspect(&running.pid());
    let held = 46 << 20; // 45 MiB and 10,000 times 112 bytes
    let scoped = resident(&report, "scoped");
    assert!(
        (held - (1 << 20)..held + (2 << 20)).contains(&scoped),
        "{scoped}"
    );
    assert_eq!(report["torn"], 0);
    assert_eq!(report["scopes"].as_array().map(Vec::len), Some(1));
    let scope = &report["scopes"][0];
    assert_eq!(scope["name"], "part");
    assert_eq!(scope["live_blocks"], 10041);
    assert_eq!(scope["live_bytes"], (45 << 20) + 10000 * 112);
    assert_eq!(scope["resident_bytes"], scoped);
    assert_eq!(scope["limit_bytes"], 64 << 20);
    let metrics = printed_by(&["metrics", &running.pid()]);
    let label = "program=\"scoped\",scope=\"part\"} 10041\n";
    assert!(metrics.contains(label), "{metrics}");
    let text = printed_by(&["inspect", &running.pid()]);
    assert!(text.contains("\n  part "), "{text}");
    let (all, rss) = (&report["accounted_bytes"], &report["rss_bytes"]);
    let share = all.as_f64().unwrap() / rss.as_f64().unwrap();
    assert!((0.98..1.02).contains(&share), "{share}");
}

/// A program of two threads that stay in a scope, and in one inside it: of 1000 blocks of 100 bytes
/// each has freed all but one.
const STAYS: &str = r#"
    #include <pthread.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    struct hakmem_scope;
    struct hakmem_scope *hakmem_scope_create(const char *, size_t, void *, void *);
    int hakmem_scope_enter(struct hakmem_scope *);
    void hakmem_scope_leave(struct hakmem_scope *);
    static void *stay(void *scope) {
        void *blocks[1000];
        hakmem_scope_enter(scope);
        for (int i = 0; i < 1000; i++)
            blocks[i] = malloc(100);
        for (int i = 1; i < 1000; i++)
            free(blocks[i]);
        return NULL;
    }
    static pthread_barrier_t both;
    static void *other(void *scope) {
        stay(scope);
        pthread_barrier_wait(&both);
        pause();
        return NULL;
    }
    int main(void) {
        struct hakmem_scope *outer = hakmem_scope_create("outer", 0, NULL, NULL);
        hakmem_scope_enter(outer);
        struct hakmem_scope *inner = hakmem_scope_create("inner", 0, NULL, NULL);
        hakmem_scope_leave(outer);
        pthread_barrier_init(&both, NULL, 2);
        pthread_t thread;
        pthread_create(&thread, NULL, other, inner);
        pthread_barrier_wait(&both);
        stay(outer);
        write(1, "{}\n", 3);
        char c;
        return (int)read(0, &c, 1);
    }"#;

#[test]
fn blocks_at_hand_are_not_live() {
    let directory = scratch();
    let program = directory.path().join("stays");
    let library = library();
    let flags = ["-O1", "-fno-builtin", "-pthread", library.to_str().unwrap()];
    let Some(()) = compile("cc", STAYS, &flags, &program) else {
        return skip("C compiler");
    };
    let running = Running::start(&program, &[], &[]);
    let report = inspect(&running.pid());
    let live = |name: &str| {
        let scopes = report["scopes"].as_array().unwrap();
        let scope = scopes.iter().find(|scope| scope["name"] == name).unwrap();
        let blocks = scope["live_blocks"].as_u64().unwrap();
        assert_eq!(scope["live_bytes"], blocks * 112, "{report}");
        blocks
    };
    assert_eq!(live("outer / inner"), 1);
    assert_eq!(live("outer"), 2);
}
