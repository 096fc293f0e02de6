//! Looks at a program's file and says whether a malloc can be preloaded into it.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use hakmem_process::find_program;
use object::elf;
use rustix::fs::Access;

use crate::allocators::{check_allocators, check_go, check_hakmem, check_sanitizers, LINK};
use crate::elf::{Image, Libc, HOST_MACHINE};
use crate::finding::{Finding, Level};
use crate::locate::Installation;
use crate::output::say;

/// Everything that can be said of a program without running it. The program is searched in PATH.
/// When it is a script, what is said is about the interpreter that runs it.
pub fn inspect(program: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let path = follow_scripts(find(program)?, &mut findings)?;
    let Some(image) = Image::read(&path)? else {
        bail!("{} is neither an ELF file nor a script", path.display());
    };
    if let Some(finding) = check_machine(&path, &image) {
        findings.push(finding);
        return Ok(findings);
    }
    let sanitizer = check_sanitizers(&image);
    if let (None, Some(finding)) = (&sanitizer, check_hakmem(&path, &image)) {
        findings.push(finding);
        return Ok(findings);
    }
    let go = check_go(&image);
    if go.is_none() || !image.is_static() {
        findings.push(check_linkage(&path, &image));
    }
    findings.extend(check_privileges(&path)?);
    if sanitizer.is_none() && go.is_none() && !image.is_static() {
        findings.extend(check_allocators(&image));
    }
    findings.extend(sanitizer);
    findings.extend(go);
    Ok(findings)
}

/// The C library of a program, which decides what can be preloaded into it. Of a file that cannot
/// be read it is that of the command: then something else goes wrong.
pub fn libc_of(program: &Path) -> Libc {
    let path = find(program).and_then(|path| follow_scripts(path, &mut Vec::new()));
    let image = path.and_then(|path| Image::read(&path)).ok().flatten();
    image.map_or(Libc::OWN, |image| image.libc())
}

/// The file of a program that may be started.
pub fn find(program: &Path) -> Result<PathBuf> {
    let Some(path) = find_program(program) else {
        bail!("cannot find the program {}", program.display());
    };
    if path.is_dir() {
        bail!("{} is a directory, not a program", path.display());
    }
    if rustix::fs::access(&path, Access::EXEC_OK).is_err() {
        let path = path.display();
        bail!("{path} may not be executed: chmod +x it, or give the program that runs it");
    }
    Ok(path)
}

/// Says on standard error when something speaks against preloading into the program, or when it may
/// be in vain. The program is then run all the same.
pub fn warn(program: &Path) {
    let findings = inspect(program).unwrap_or_default();
    if let Some(finding) = worst(&findings) {
        let text = &finding.text;
        say(format_args!(
            "hakmem: warning: {text}; hakmem doctor says more"
        ));
    }
}

/// What weighs most among the findings that hakmem may not serve a program.
pub fn worst(findings: &[Finding]) -> Option<&Finding> {
    let bad = findings
        .iter()
        .filter(|finding| finding.level >= Level::Doubt);
    // The first of those that weigh the same.
    bad.rev().max_by_key(|finding| finding.level)
}

/// The kernel follows this many scripts that run one another.
const MOST_SCRIPTS: usize = 5;

fn follow_scripts(mut path: PathBuf, findings: &mut Vec<Finding>) -> Result<PathBuf> {
    for _ in 0..MOST_SCRIPTS {
        let Some(interpreter) = interpreter_of_script(&path)? else {
            return Ok(path);
        };
        let Some(found) = find_program(&interpreter) else {
            bail!(
                "{} is run by {}, which does not exist",
                path.display(),
                interpreter.display()
            );
        };
        let text = format!("{} is a script, run by {}", path.display(), found.display());
        findings.push(Finding::good("script", text));
        path = found;
    }
    bail!(
        "{}: more than {MOST_SCRIPTS} scripts run one another",
        path.display()
    )
}

/// What runs a script without `#!`, of which the kernel wants to know nothing.
const SHELL: &str = "/bin/sh";

/// The program that the first line of a script names; what `env` is told to run, not env itself.
fn interpreter_of_script(path: &Path) -> Result<Option<PathBuf>> {
    let mut start = Vec::new();
    hakmem_files::ordinary(path)
        .and_then(|file| file.take(4096).read_to_end(&mut start))
        .with_context(|| format!("cannot read {}", path.display()))?;
    let Some(line) = start.strip_prefix(b"#!") else {
        let is_text = !start.starts_with(&elf::ELFMAG) && !start.contains(&0);
        return Ok(is_text.then(|| SHELL.into()));
    };
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let Some(interpreter) = words.next() else {
        bail!("{}: no program after #!", path.display());
    };
    if Path::new(interpreter)
        .file_name()
        .is_some_and(|name| name == "env")
    {
        let is_program = |word: &&str| !word.starts_with('-') && !word.contains('=');
        if let Some(program) = words.find(is_program) {
            return Ok(Some(program.into()));
        }
    }
    Ok(Some(interpreter.into()))
}

fn check_machine(path: &Path, image: &Image) -> Option<Finding> {
    if image.machine == HOST_MACHINE && image.bits == 64 {
        return None;
    }
    let machine = match image.machine {
        elf::EM_386 => "32-bit x86".to_owned(),
        elf::EM_ARM => "32-bit ARM".to_owned(),
        elf::EM_X86_64 if image.bits == 32 => "x86-64 with 32-bit pointers (x32)".to_owned(),
        elf::EM_X86_64 => "x86-64".to_owned(),
        elf::EM_AARCH64 => "AArch64".to_owned(),
        other => format!("machine {}, {} bits", other.0, image.bits),
    };
    Some(Finding::obstacle(
        "machine",
        format!(
            "{} is built for {machine}, hakmem for {}",
            path.display(),
            std::env::consts::ARCH
        ),
        "use a program and a hakmem of the same kind; hakmem exists for x86-64 and AArch64",
    ))
}

fn check_linkage(path: &Path, image: &Image) -> Finding {
    let path = path.display();
    let Some(interpreter) = &image.interpreter else {
        return Finding::obstacle(
            "static",
            format!("{path} is statically linked: nothing can be preloaded"),
            format!("build it dynamically linked, or {LINK}"),
        );
    };
    if !interpreter.exists() {
        return Finding::obstacle(
            "interpreter",
            format!(
                "{path} asks for {}, which does not exist",
                interpreter.display()
            ),
            "install the C library that the program was built for",
        );
    }
    match image.libc() {
        Libc::OWN => Finding::good("dynamic", format!("{path} is dynamically linked")),
        other => check_other_libc(path, other),
    }
}

/// A program of another C library needs a library of its own.
fn check_other_libc(path: impl std::fmt::Display, libc: Libc) -> Finding {
    let name = libc.name();
    match Installation::current().and_then(|installation| installation.library(libc, false)) {
        Ok(_) => Finding::good(
            "dynamic",
            format!("{path} is dynamically linked, with {name}, for which there is a library"),
        ),
        Err(error) => Finding::obstacle(
            name,
            format!("{path} uses {name} as its C library, for which there is no hakmem here"),
            error.to_string(),
        ),
    }
}

/// The dynamic linker preloads nothing into a program that gets more rights than its caller has.
fn check_privileges(path: &Path) -> Result<Vec<Finding>> {
    let metadata = path
        .metadata()
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mode = metadata.mode();
    let user = rustix::process::getuid();
    let mut findings = Vec::new();
    let advice = "run a copy of the program that has no such right, or link it with hakmem.o";
    let mut raised = |topic, what: String| {
        let text = format!("{what}: the dynamic linker then preloads nothing");
        findings.push(Finding::obstacle(topic, text, advice));
    };
    if mode & 0o4000 != 0 && metadata.uid() != user.as_raw() {
        raised(
            "setuid",
            format!("it runs with the rights of user {}", metadata.uid()),
        );
    }
    // Without the right to execute for the group, the bit once meant something else.
    let group = rustix::process::getgid().as_raw();
    if mode & 0o2010 == 0o2010 && metadata.gid() != group {
        raised(
            "setgid",
            format!("it runs with the rights of group {}", metadata.gid()),
        );
    }
    if !user.is_root() && has_capabilities(path) {
        raised("capabilities", "the file has capabilities".to_owned());
    }
    if findings.is_empty() {
        findings.push(Finding::good(
            "privileges",
            "it runs with no more rights than you have",
        ));
    }
    Ok(findings)
}

fn has_capabilities(path: &Path) -> bool {
    let mut value = [0u8; 64];
    rustix::fs::getxattr(path, "security.capability", &mut value[..]).is_ok_and(|size| size > 0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn script(first_line: &str) -> Result<Option<PathBuf>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("script");
        fs::write(&path, format!("{first_line}\nrest\n")).unwrap();
        interpreter_of_script(&path)
    }

    #[test]
    fn interpreters_of_scripts() {
        for (line, interpreter) in [
            ("#!/bin/sh", "/bin/sh"),
            ("#! /bin/sh -e", "/bin/sh"),
            ("#!/usr/bin/env python3", "python3"),
            ("#!/usr/bin/env -S A=1 python3 -u", "python3"),
            ("#!/usr/bin/env", "/usr/bin/env"),
        ] {
            assert_eq!(script(line).unwrap(), Some(interpreter.into()), "{line}");
        }
        assert_eq!(script("echo plain").unwrap(), Some("/bin/sh".into()));
        assert_eq!(script("binary\0").unwrap(), None);
        assert_eq!(script("\x7fELF").unwrap(), None);
        assert!(script("#!").is_err());
    }

    #[test]
    fn an_ordinary_program_is_fine() {
        let findings = inspect(Path::new("/bin/true")).unwrap();
        assert!(
            findings.iter().all(|finding| finding.level == Level::Good),
            "{findings:?}"
        );
    }
}
