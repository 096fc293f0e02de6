//! Finding allocators, in directories made for the purpose.

use std::fs;
use std::path::{Path, PathBuf};

use hakmem_lab::allocators::{FindError, Finder};
use hakmem_results::{Arm, ArmKind};
use tempfile::TempDir;

/// A tree with hakmem, two peers, and one that the distribution installed.
fn tree() -> (TempDir, Finder) {
    let directory = tempfile::tempdir().unwrap();
    let file = |path: &str, text: &str| {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    let library = file("libhakmem.so", "abc");
    file("peers/libmimalloc3.so", "m");
    file("peers/libtcmalloc.so", "t");
    file("peers/readme.txt", "");
    file(
        "peers/peers.json",
        r#"{"peers":[{"name":"tcmalloc","library":"libtcmalloc.so","version":"2.1","flags":"-O2",
            "environment":["GLIBC_TUNABLES=glibc.pthread.rseq=0"]}]}"#,
    );
    file("system/libjemalloc.so.2", "j");
    file("elsewhere/libmine.so", "x");
    file("elsewhere/libhakmem-old.so", "y");
    let finder = Finder {
        library,
        peers_directory: directory.path().join("peers"),
        system_directories: vec![
            directory.path().join("none"),
            directory.path().join("system"),
        ],
    };
    (directory, finder)
}

fn names(arms: &[Arm]) -> Vec<&str> {
    arms.iter().map(|arm| arm.name.as_str()).collect()
}

fn select(finder: &Finder, with: &[&str]) -> Result<Vec<Arm>, FindError> {
    let with: Vec<String> = with.iter().map(|name| name.to_string()).collect();
    finder.select(&with)
}

#[test]
fn everything_is_found() {
    let (_directory, finder) = tree();
    let arms = finder.found().unwrap();
    assert_eq!(
        names(&arms),
        [
            "hakmem",
            "system",
            "mimalloc3",
            "tcmalloc",
            "jemalloc-debian"
        ]
    );
    let kinds: Vec<ArmKind> = arms.iter().map(|arm| arm.kind).collect();
    assert_eq!(
        kinds[..3],
        [ArmKind::Hakmem, ArmKind::System, ArmKind::Peer]
    );
    assert_eq!(
        arms[0].digest.as_deref(),
        Some("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    );
    assert_eq!((&arms[1].library, &arms[1].digest), (&None, &None));
    assert!(arms[2]
        .library
        .as_ref()
        .unwrap()
        .ends_with("/peers/libmimalloc3.so"));
    assert_eq!(arms[2].version, None);
    assert_eq!(arms[3].version.as_deref(), Some("2.1"));
    assert_eq!(
        arms[3].environment["GLIBC_TUNABLES"],
        "glibc.pthread.rseq=0"
    );
    assert_eq!(names(&select(&finder, &[]).unwrap()), names(&arms));
}

#[test]
fn a_list_selects() {
    let (directory, finder) = tree();
    let chosen = select(&finder, &["tcmalloc", "system"]).unwrap();
    assert_eq!(names(&chosen), ["hakmem", "tcmalloc", "system"]);
    let chosen = select(&finder, &["peers"]).unwrap();
    assert_eq!(
        names(&chosen),
        ["hakmem", "mimalloc3", "tcmalloc", "jemalloc-debian"]
    );

    let mine = directory
        .path()
        .join("elsewhere/libmine.so")
        .display()
        .to_string();
    let chosen = select(&finder, &["system", &mine]).unwrap();
    assert_eq!(names(&chosen), ["hakmem", "system", "mine"]);
    assert_eq!(chosen[2].kind, ArmKind::Peer);
    assert_eq!(chosen[2].library.as_deref(), Some(&mine[..]));
}

#[test]
fn another_build_of_hakmem_has_to_prove_it() {
    let (directory, finder) = tree();
    let old = directory
        .path()
        .join("elsewhere/libhakmem-old.so")
        .display()
        .to_string();
    let chosen = select(&finder, &[&old]).unwrap();
    assert_eq!(names(&chosen), ["hakmem", "hakmem-old"]);
    assert_eq!(chosen[1].kind, ArmKind::Hakmem);

    let chosen = select(&finder, &[&format!("before={old}")]).unwrap();
    assert_eq!(names(&chosen), ["hakmem", "before"]);
    assert_eq!(chosen[1].kind, ArmKind::Hakmem);
    assert_eq!(chosen[1].library.as_deref(), Some(&old[..]));
}

#[test]
fn names_stay_unique() {
    let (_directory, finder) = tree();
    let library = finder.library.display().to_string();
    // A name asks for what is there already; a path for one more, which is a way to an A/A test.
    let chosen = select(&finder, &["hakmem", &library, &library, "system", "system"]).unwrap();
    assert_eq!(names(&chosen), ["hakmem", "hakmem-2", "hakmem-3", "system"]);
}

#[test]
fn an_unknown_name_is_told_what_there_is() {
    let (_directory, finder) = tree();
    let message = select(&finder, &["mimaloc"]).unwrap_err().to_string();
    assert_eq!(
        message,
        "there is no allocator `mimaloc`, did you mean `mimalloc3`?; found: hakmem, system, \
         mimalloc3, tcmalloc, jemalloc-debian; `make peers` builds more"
    );
    let message = select(&finder, &["xyz"]).unwrap_err().to_string();
    assert!(
        message.starts_with("there is no allocator `xyz`; found: hakmem"),
        "{message}"
    );
}

#[test]
fn a_library_that_is_not_there_is_an_error() {
    let (_directory, mut finder) = tree();
    let error = select(&finder, &["./libnone.so"]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot read ./libnone.so: No such file"),
        "{error}"
    );
    finder.library = PathBuf::from("/nowhere/libhakmem.so");
    assert!(matches!(finder.found(), Err(FindError::Unreadable { .. })));
}

#[test]
fn a_path_that_cannot_be_preloaded_is_an_error() {
    let (directory, finder) = tree();
    for name in ["lib two.so", "lib:two.so"] {
        let path = directory.path().join(name);
        fs::write(&path, "").unwrap();
        let error = select(&finder, &[&path.display().to_string()]).unwrap_err();
        assert!(matches!(error, FindError::Unspeakable { .. }), "{error}");
    }
}

#[test]
fn without_peers_the_rest_is_found() {
    let (_directory, mut finder) = tree();
    finder.peers_directory = PathBuf::from("/nowhere");
    finder.system_directories.clear();
    assert_eq!(names(&finder.found().unwrap()), ["hakmem", "system"]);
    // hakmem would be compared with nothing but itself.
    for list in ["peers", "hardened"] {
        let message = select(&finder, &[list]).unwrap_err().to_string();
        let expected = format!("none of `{list}` found; `make peers` builds them");
        assert_eq!(message, expected);
    }
}

#[test]
fn a_broken_list_of_peers_is_an_error() {
    let (_directory, finder) = tree();
    fs::write(finder.peers_directory.join("peers.json"), "{").unwrap();
    let message = finder.found().unwrap_err().to_string();
    assert!(
        message.contains("peers.json is not a list of peers"),
        "{message}"
    );
    assert!(message.contains("`make peers`"), "{message}");
}

#[test]
fn relative_paths_become_absolute() {
    let (_directory, finder) = tree();
    let source = "src/lib.rs";
    let relative = Finder {
        library: PathBuf::from(source),
        ..finder
    };
    let library = relative.found().unwrap()[0].library.clone().unwrap();
    assert!(Path::new(&library).is_absolute());
    assert!(library.ends_with(source));
}

#[test]
fn hardened_peers_are_compared_when_they_are_asked_for() {
    let (directory, finder) = tree();
    for name in ["hardened-malloc", "scudo"] {
        fs::write(directory.path().join(format!("peers/lib{name}.so")), name).unwrap();
    }
    let usual = ["hakmem", "mimalloc3", "tcmalloc", "jemalloc-debian"];
    assert_eq!(names(&select(&finder, &["peers"]).unwrap()), usual);
    assert!(!names(&select(&finder, &[]).unwrap()).contains(&"scudo"));
    assert_eq!(
        names(&select(&finder, &["hardened"]).unwrap()),
        ["hakmem", "hardened-malloc", "scudo"]
    );
    assert_eq!(
        names(&select(&finder, &["scudo"]).unwrap()),
        ["hakmem", "scudo"]
    );
}
