//! Tests of what is passed on, kept and shown.

use super::*;

/// What becomes of pieces of input, and what was explained.
fn passed(pieces: &[&str]) -> (Vec<String>, Explainer) {
    /// Remembers what was there when it was flushed.
    #[derive(Default)]
    struct Flushed(Vec<u8>, Vec<String>);
    impl Write for Flushed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            let text = String::from_utf8(std::mem::take(&mut self.0)).unwrap();
            self.1.push(text);
            Ok(())
        }
    }
    /// Gives a piece at a time, as a pipe does.
    struct Pieces<'a>(Vec<&'a [u8]>);
    impl io::Read for Pieces<'_> {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            unreachable!("it is read by pieces")
        }
    }
    impl BufRead for Pieces<'_> {
        fn fill_buf(&mut self) -> io::Result<&[u8]> {
            Ok(self.0.first().copied().unwrap_or_default())
        }
        fn consume(&mut self, _: usize) {
            if !self.0.is_empty() {
                self.0.remove(0);
            }
        }
    }
    let (mut explainer, mut out) = (Explainer::default(), Flushed::default());
    let pieces = Pieces(pieces.iter().map(|piece| piece.as_bytes()).collect());
    pass(pieces, &mut explainer, &mut out).unwrap();
    (out.1, explainer)
}

#[test]
fn calls_are_before_the_address_behind_them() {
    let (_, explainer) = passed(&[
        "hakmem: words\nbacktrace:\n  #0 0x1 (/a+0x10)\n  #1 0x1 (/a+0x20)\nfreed by thread \
         7:\n  #0 0x1 (/a+0x30)\n",
    ]);
    let report = &explainer.reports[0];
    assert_eq!(report.what, ["hakmem: words"]);
    let offsets =
        |stack: &Stack| -> Vec<u64> { stack.calls.iter().map(|call| call.offset).collect() };
    assert_eq!(offsets(&report.stacks[0]), [0x10, 0x1f]);
    assert_eq!(offsets(&report.stacks[1]), [0x2f]);
    assert_eq!(report.stacks[1].title, "freed by thread 7");
}

#[test]
fn what_is_no_frame_is_passed_on_as_it_comes() {
    let pieces = [
        "ready> ",
        "yes\n  #0 0x1 (/nowh",
        "ere+0x10)\n",
        "more\n",
        "end",
    ];
    let (flushed, explainer) = passed(&pieces);
    // The frame is held until it is known that no call inside of hakmem follows.
    let expected = [
        "ready> ",
        "yes\n",
        "",
        "  #0 0x1 (/nowhere+0x10)\nmore\n",
        "end",
        "",
    ];
    assert_eq!(flushed, expected);
    assert_eq!(explainer.said.len(), 1);
}

#[test]
fn what_is_kept_is_bounded() {
    let long = "x".repeat(LONGEST);
    let frame = format!("#0 0x1 (/{long}+0x10)");
    let pieces = [&frame, &*long, "more\n", "  #1 0x1 (/a+0x10)\n"];
    let (flushed, explainer) = passed(&pieces);
    assert_eq!(flushed.concat(), pieces.concat());
    assert_eq!(
        (explainer.frames, explainer.title.len()),
        (1, LONGEST + "more".len())
    );

    let word = format!("hakmem: {}\n", &long[..1000]);
    let (mut explainer, mut out) = (Explainer::default(), io::sink());
    let whole = word.repeat(MOST / (size_of::<Report>() + word.len()));
    pass(whole.as_bytes(), &mut explainer, &mut out).unwrap();
    let error = pass(whole.as_bytes(), &mut explainer, &mut out).unwrap_err();
    let said = "it has more than 32 MiB of crash reports";
    assert_eq!(error.to_string(), said);
}

/// What is shown of these calls, each a file and a function, or none.
fn shown(what: &str, calls: &[(&str, &str)]) -> String {
    let calls = calls.iter().zip(0..).map(|((module, function), number)| {
        let frame = Frame {
            function: (*function).to_owned(),
            ..Frame::default()
        };
        let is_named = !function.is_empty();
        Call {
            line: format!("#{number} {module}\n").into_bytes(),
            number,
            module: (*module).to_owned(),
            offset: 1,
            functions: is_named.then_some(frame).into_iter().collect(),
        }
    });
    let (_, mut explainer) = passed(&[what, "backtrace:\n"]);
    explainer.held = calls.collect();
    let mut out = Vec::new();
    explainer.end_stack(&mut out).unwrap();
    String::from_utf8(out).unwrap().replace(" in \n", "\n")
}

#[test]
fn calls_inside_of_hakmem_are_left_out() {
    let misuse = "hakmem: free(): double free of 0x7f1e22400000\n";
    let aborted = format!("hakmem: SIGABRT in /a, process 7, thread 7\n{misuse}");
    let linked = |last| [("/a", "fatal_print"), ("/a", last), ("/a", "main")];
    for last in ["free", "free_slow", "resize_block", "hakmem_free"] {
        for what in [misuse, &aborted] {
            assert_eq!(shown(what, &linked(last)), "#2 main\n", "{last}");
        }
    }
    let library = ("/lib/libhakmem.so.0", "");
    let calls = [library, library, ("/a", "main"), ("/a", "")];
    assert_eq!(shown(misuse, &calls), "#2 main\n#3 /a\n");
    assert_eq!(shown(misuse, &calls[..2]), "#1 /lib/libhakmem.so.0\n");
    // Where hakmem itself got the signal, its calls are what there is to see.
    let crash = "hakmem: SIGSEGV at 0x10, where nothing is mapped\n";
    let all = "#0 /lib/libhakmem.so.0\n#1 /lib/libhakmem.so.0\n#2 main\n#3 /a\n";
    assert_eq!(shown(crash, &calls), all);
}
