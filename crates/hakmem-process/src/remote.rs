//! A traced process from outside: its memory, and the registers of a thread of it that is stopped.
//!
//! The tracer calls functions of the process, so that nothing of the lab has to be loaded into it:
//! it sets the registers as the processor's calling convention says and lets the thread run until
//! the function returns to a breakpoint.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use nix::errno::Errno;
use nix::libc::user_regs_struct;
use nix::sys::ptrace;
use nix::unistd::Pid;

/// The memory of a process. It stays that of the program which ran when it was opened: after an
/// exec, or when the process is gone, nothing can be read or written.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    file: Arc<File>,
}

impl Memory {
    pub fn open(pid: i32) -> io::Result<Memory> {
        let file = File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))?;
        Ok(Memory {
            file: Arc::new(file),
        })
    }

    pub fn read<const LENGTH: usize>(&self, address: u64) -> Option<[u8; LENGTH]> {
        let mut bytes = [0; LENGTH];
        self.file.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }

    pub fn word(&self, address: u64) -> Option<u64> {
        self.read(address).map(u64::from_ne_bytes)
    }

    pub fn half_word(&self, address: u64) -> Option<u32> {
        self.read(address).map(u32::from_ne_bytes)
    }

    pub fn bytes(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }

    /// Whether this text, with the zero that ends it, is at the address.
    pub fn has_text(&self, address: u64, text: &str) -> bool {
        let found = self.bytes(address, text.len() + 1);
        found.is_some_and(|found| found.strip_suffix(&[0]) == Some(text.as_bytes()))
    }

    /// Writes, even where the program may not.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Option<()> {
        self.file.write_all_at(bytes, address).ok()
    }
}

/// A place in the code at which threads stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Breakpoint {
    pub address: u64,
    original: [u8; TRAP.len()],
}

impl Breakpoint {
    /// Remembers what is at the address.
    pub fn new(memory: &Memory, address: u64) -> Option<Breakpoint> {
        Some(Breakpoint {
            address,
            original: memory.read(address)?,
        })
    }

    /// From now on threads stop here; those that run as well.
    pub fn arm(&self, memory: &Memory) -> Option<()> {
        memory.write(self.address, &TRAP)
    }

    pub fn disarm(&self, memory: &Memory) -> Option<()> {
        memory.write(self.address, &self.original)
    }

    pub fn is_armed(&self, memory: &Memory) -> bool {
        memory.read(self.address) == Some(TRAP)
    }
}

/// What a thread sleeps in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sleep {
    /// The number of the system call.
    pub number: u64,
    /// Its first argument.
    pub first: u64,
    /// The kernel goes on with it by another call, which knows how long is left.
    pub knows_rest: bool,
}

/// What calls return that a signal has interrupted.
const INTERRUPTED: u64 = -(Errno::EINTR as i64) as u64;

/// The registers of a stopped thread.
#[derive(Clone, Copy)]
pub(crate) struct Registers {
    values: user_regs_struct,
}

/// Below the stack pointer, more than what the program may use there without moving it.
const LEFT_ALONE: u64 = 512;

impl Registers {
    pub fn of(tid: i32) -> Result<Registers, Errno> {
        let values = ptrace::getregs(Pid::from_raw(tid))?;
        Ok(Registers { values })
    }

    pub fn set(&self, tid: i32) -> Result<(), Errno> {
        ptrace::setregs(Pid::from_raw(tid), self.values)
    }

    /// Some 300 bytes of the stack that nobody uses.
    pub fn scratch(&self) -> u64 {
        (self.stack() - LEFT_ALONE) & !15
    }

    /// The registers with which the thread begins to run the function, which will return to
    /// `back`. What is in the arguments is at `scratch` or not on the stack.
    pub fn calling(
        &self,
        memory: &Memory,
        function: u64,
        arguments: &[u64],
        back: u64,
    ) -> Option<Registers> {
        let mut registers = *self;
        registers.set_stack(self.scratch() - 128);
        registers.go_to(function);
        registers.set_arguments(arguments);
        registers.push_return_address(memory, back)?;
        Some(registers)
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{FLOATING_POINT, TRAP};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::{Memory, Registers, Sleep, INTERRUPTED};

    /// The instruction `int3`.
    pub(crate) const TRAP: [u8; 1] = [0xcc];

    /// The kernel's name of the set of registers that functions need not preserve:
    /// `NT_X86_XSTATE`.
    pub(crate) const FLOATING_POINT: i32 = 0x202;

    /// The flag by which copies go from the end on. A function begins without it.
    const BACKWARDS: u64 = 1 << 10;

    /// The instruction `syscall`.
    const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];
    const NO_CALL: u64 = u64::MAX;

    impl Registers {
        /// Of a thread that was stopped in that system call: where the instruction is. `None`: it
        /// was not stopped in it.
        pub fn place_of_call(&self, memory: &Memory, sleep: Sleep) -> Option<u64> {
            let place = self.values.rip.wrapping_sub(SYSTEM_CALL.len() as u64);
            let is_in_it = self.values.orig_rax == sleep.number;
            (is_in_it && memory.read(place) == Some(SYSTEM_CALL)).then_some(place)
        }

        /// How the thread goes on with that call, which is at this place. Nearly all are made again
        /// by the kernel; those that it ends instead are made again here.
        pub fn going_on(mut self, sleep: Sleep, place: u64, is_interrupted: bool) -> Registers {
            if self.values.rax == INTERRUPTED && !is_interrupted {
                self.values.rip = place;
                self.values.rax = sleep.number;
                self.values.orig_rax = NO_CALL;
            }
            self
        }

        /// The thread will make this system call by the instruction at that place.
        pub fn set_call(&mut self, place: u64, number: u64, arguments: [u64; 6]) {
            self.values.rip = place;
            self.values.rax = number;
            self.set_arguments(&arguments);
            self.values.r10 = arguments[3];
            self.leave_call();
        }

        /// It is in no system call.
        pub fn leave_call(&mut self) {
            self.values.orig_rax = NO_CALL;
        }

        /// The address of the breakpoint that stopped the thread, if one did.
        pub fn trapped_at(&self) -> u64 {
            self.values.rip.wrapping_sub(1)
        }

        /// Where the thread is.
        pub fn place(&self) -> u64 {
            self.values.rip
        }

        pub fn go_to(&mut self, address: u64) {
            self.values.rip = address;
        }

        pub fn stack(&self) -> u64 {
            self.values.rsp
        }

        pub fn set_stack(&mut self, address: u64) {
            self.values.rsp = address;
        }

        pub fn argument(&self, index: usize) -> u64 {
            [self.values.rdi, self.values.rsi][index]
        }

        pub fn set_arguments(&mut self, arguments: &[u64]) {
            let registers = [
                &mut self.values.rdi,
                &mut self.values.rsi,
                &mut self.values.rdx,
                &mut self.values.rcx,
                &mut self.values.r8,
                &mut self.values.r9,
            ];
            for (register, argument) in registers.into_iter().zip(arguments) {
                *register = *argument;
            }
        }

        /// Where a large structure goes that a function returns: the first argument.
        pub fn set_structure(&mut self, address: u64) {
            self.values.rdi = address;
        }

        pub fn result(&self) -> u64 {
            self.values.rax
        }

        /// At the first instruction of a function: where it will return to.
        pub fn return_address(&self, memory: &Memory) -> Option<u64> {
            memory.word(self.values.rsp)
        }

        pub fn set_return_address(&mut self, memory: &Memory, address: u64) -> Option<()> {
            memory.write(self.values.rsp, &address.to_ne_bytes())
        }

        pub(super) fn push_return_address(&mut self, memory: &Memory, address: u64) -> Option<()> {
            self.values.eflags &= !BACKWARDS;
            self.values.rsp -= 8;
            self.set_return_address(memory, address)
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{FLOATING_POINT, TRAP};

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use super::{Memory, Registers, Sleep, INTERRUPTED};

    /// The instruction `brk #0`.
    pub(crate) const TRAP: [u8; 4] = 0xd420_0000u32.to_le_bytes();

    /// The kernel's name of the set of registers that functions need not preserve: `NT_PRFPREG`.
    /// What else the vector units have does not survive a system call anyway.
    pub(crate) const FLOATING_POINT: i32 = 2;

    /// The instruction `svc #0`.
    const SYSTEM_CALL: [u8; 4] = 0xd400_0001u32.to_le_bytes();

    impl Registers {
        /// Of a thread that was stopped in that system call: where the instruction is. `None`: it
        /// was not stopped in it. If the kernel will make the call again, the thread is there.
        pub fn place_of_call(&self, memory: &Memory, sleep: Sleep) -> Option<u64> {
            let behind = self.values.pc.wrapping_sub(SYSTEM_CALL.len() as u64);
            let mut places = [self.values.pc, behind].into_iter();
            let place = places.find(|&place| memory.read(place) == Some(SYSTEM_CALL));
            place.filter(|_| self.values.regs[8] == sleep.number)
        }

        /// How the thread goes on with that call, which is at this place. Nearly all are made again
        /// by the kernel; those that it ends instead are made again here.
        pub fn going_on(mut self, sleep: Sleep, place: u64, is_interrupted: bool) -> Registers {
            if self.values.pc == place && sleep.knows_rest {
                self.values.regs[8] = nix::libc::SYS_restart_syscall as u64;
            } else if self.values.regs[0] == INTERRUPTED && !is_interrupted {
                self.values.pc = place;
                self.values.regs[0] = sleep.first;
            }
            self
        }

        /// The thread will make this system call by the instruction at that place.
        pub fn set_call(&mut self, place: u64, number: u64, arguments: [u64; 6]) {
            self.values.pc = place;
            self.values.regs[8] = number;
            self.set_arguments(&arguments);
        }

        /// It is in no system call.
        pub fn leave_call(&mut self) {}

        /// The address of the breakpoint that stopped the thread, if one did.
        pub fn trapped_at(&self) -> u64 {
            self.values.pc
        }

        /// Where the thread is.
        pub fn place(&self) -> u64 {
            self.values.pc
        }

        pub fn go_to(&mut self, address: u64) {
            self.values.pc = address;
        }

        pub fn stack(&self) -> u64 {
            self.values.sp
        }

        pub fn set_stack(&mut self, address: u64) {
            self.values.sp = address;
        }

        pub fn argument(&self, index: usize) -> u64 {
            self.values.regs[index]
        }

        pub fn set_arguments(&mut self, arguments: &[u64]) {
            self.values.regs[..arguments.len()].copy_from_slice(arguments);
        }

        /// Where a large structure goes that a function returns: register 8.
        pub fn set_structure(&mut self, address: u64) {
            self.values.regs[8] = address;
        }

        pub fn result(&self) -> u64 {
            self.values.regs[0]
        }

        /// At the first instruction of a function: where it will return to.
        pub fn return_address(&self, _: &Memory) -> Option<u64> {
            Some(self.values.regs[30])
        }

        pub fn set_return_address(&mut self, _: &Memory, address: u64) -> Option<()> {
            self.values.regs[30] = address;
            Some(())
        }

        pub(super) fn push_return_address(&mut self, memory: &Memory, address: u64) -> Option<()> {
            self.set_return_address(memory, address)
        }
    }
}
