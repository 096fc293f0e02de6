//! Why the kernel lets this process not look into another one: which setting or right it is.

use std::fs;

use crate::process::{number_in, shares};

const CAP_SYS_PTRACE: u64 = 19;

/// Which setting or capability keeps this process from reading the memory of that one.
pub(crate) fn denial(pid: i32) -> String {
    let own = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let other = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let capabilities = own.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    let may_trace = capabilities.unwrap_or(0) >> CAP_SYS_PTRACE & 1 == 1;
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    let scope = scope.and_then(|text| text.trim().parse::<u32>().ok());
    let same_user = number_in(&own, "Uid:") == number_in(&other, "Uid:");
    reason(may_trace, scope, same_user, shares(pid, "ns/user"))
}

fn reason(
    may_trace: bool,
    scope: Option<u32>,
    same_user: bool,
    same_namespace: Option<bool>,
) -> String {
    match (may_trace, scope) {
        (_, Some(3)) => {
            "kernel.yama.ptrace_scope is 3, which forbids it to everybody until the machine is \
             started again"
        }
        (true, _) if same_namespace.is_none() => {
            "although this user has CAP_SYS_PTRACE, the kernel does not even say in which \
             namespaces it runs: a container (another user namespace), a security module \
             (SELinux, AppArmor) or a filter of system calls forbids it"
        }
        (true, _) if same_namespace == Some(false) => {
            "it runs in a container (another user namespace), in which this user has no \
             CAP_SYS_PTRACE: run hakmem inside, or as root outside of all containers"
        }
        (true, _) => {
            "a security module (SELinux, AppArmor) or a filter of system calls forbids it; a \
             container's usual filter lets CAP_SYS_PTRACE through only if it was given to the \
             container (docker run --cap-add SYS_PTRACE)"
        }
        (false, _) if !same_user => {
            "it is another user's, which takes CAP_SYS_PTRACE: run hakmem as root, or as that user"
        }
        (false, Some(2)) => {
            "kernel.yama.ptrace_scope is 2, which takes CAP_SYS_PTRACE: run hakmem as root"
        }
        (false, Some(1)) => {
            "kernel.yama.ptrace_scope is 1, which allows it for one's own children only: run \
             hakmem as root (CAP_SYS_PTRACE), or set it to 0 (sysctl kernel.yama.ptrace_scope=0)"
        }
        _ => {
            "the program is not dumpable (it changed its user, or asked for that), which takes \
             CAP_SYS_PTRACE: run hakmem as root"
        }
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_names_its_setting() {
        let known = Some(true);
        assert!(reason(false, Some(1), true, known).contains("ptrace_scope is 1"));
        assert!(reason(false, Some(2), true, known).contains("ptrace_scope is 2"));
        assert!(reason(true, Some(3), true, known).contains("ptrace_scope is 3"));
        assert!(reason(false, None, false, known).contains("another user's"));
        assert!(reason(false, Some(0), true, known).contains("not dumpable"));
        assert!(reason(true, Some(0), true, Some(false)).contains("it runs in a container"));
        assert!(reason(true, None, true, known).contains("filter of system calls"));
        // What is not known is not claimed.
        assert!(!reason(true, None, true, None).contains("it runs in a container"));
    }
}
