"""A page of docs/guides as steps that can be run, and what output it promises.

What a reader sees on the page is what is run:

    ```sh        the commands, all of a page in one shell, in order
    ```text      right behind such a block: what it prints, on both streams, as far as it is shown
    anything     other blocks are for reading: ```console has what a test cannot do

Comments, which the reader does not see, say the rest:

    <!-- guide: needs=A,B packages=C,D quick -->   commands or files and Debian packages that the
                                                   page needs; quick: it is part of `make check`
    <!-- file: NAME -->                            the next block is the text of a file
    <!-- run: COMMANDS -->                         commands that the reader need not type

In what is printed, figures and verdicts change from run to run. So a line is like another if it is
the same but for numbers with their units, words such as `faster`, rules and the width of gaps. The
lines of the page have to come in their order; `...` stands for lines that are left out.
"""

import dataclasses
import re

FENCE = re.compile(r"^```(\w*)$")
COMMENT = re.compile(r"<!-- (guide|file|run): ?(.*?) ?-->", re.DOTALL)
NUMBER = re.compile(r"[-+]?\d[\d.,  ]*\d|\d")
UNIT = re.compile(r"# ?(?:[KMG]iB|B|ms|us|µs|ns|s|min|%|[kMG]\b)(?!\w)")
VERDICT = re.compile(r"\b(faster|slower|smaller|larger|unclear|no difference|too few rounds|itself"
                     r"|NOT ITSELF)\b")
PLURAL = re.compile(r"\b(thread heap|block|superslab)s\b")
LEFT_OUT = ("...", "..")


class PageError(Exception):
    """A page is not written as it has to be; the message says where."""


@dataclasses.dataclass
class Step:
    """Commands, with what they print, or the text of a file."""
    line: int  # of the page, from 1
    text: str
    file: str = ""  # its name; empty: commands
    output: tuple = ()  # lines of the page
    output_line: int = 0  # the first of them, from 1
    hidden: bool = False


@dataclasses.dataclass
class Page:
    """A guide."""
    name: str
    needs: list
    packages: list
    quick: bool
    steps: list


def shape(line):
    """What is the same in every run of it."""
    line = NUMBER.sub("#", line)
    line = UNIT.sub("#", line)
    line = VERDICT.sub("~", line)
    line = re.sub(r"─+", "─", line)
    line = PLURAL.sub(r"\1", line)
    return " ".join(line.split())


def blocks(text):
    """(line, word behind the fence, lines) of each fenced block, and (line, kind, rest) of each
    comment, in order."""
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if fence:
            end = next((at for at in range(number + 1, len(lines)) if lines[at] == "```"), None)
            if end is None:
                raise PageError("line %d: the block does not end" % (number + 1))
            yield number + 1, fence.group(1), lines[number + 1:end]
            number = end + 1
            continue
        if lines[number].startswith("<!-- "):
            end = next((at for at in range(number, len(lines)) if lines[at].endswith("-->")), None)
            comment = end is not None and COMMENT.fullmatch("\n".join(lines[number:end + 1]))
            if comment:
                yield number + 1, "comment " + comment.group(1), comment.group(2)
                number = end
        number += 1


def settings(words):
    """needs, packages and quick of the comment at the top."""
    values = {"needs": [], "packages": []}
    quick = False
    for word in words.split():
        name, _, value = word.partition("=")
        if word == "quick":
            quick = True
        elif name in values and value:
            values[name] = value.split(",")
        else:
            raise PageError("the guide comment has no %s" % word)
    return values["needs"], values["packages"], quick


def read(name, text):
    """The page."""
    steps = []
    head = None
    file = ""
    for line, kind, content in blocks(text):
        if kind == "comment guide":
            head = settings(content)
        elif kind == "comment file":
            file = content
        elif kind == "comment run":
            steps.append(Step(line, content, hidden=True))
        elif file:
            steps.append(Step(line, "\n".join(content), file=file))
            file = ""
        elif kind == "sh":
            steps.append(Step(line, "\n".join(content)))
        elif kind == "text":
            if not steps or steps[-1].file or steps[-1].output or steps[-1].hidden:
                raise PageError("line %d: output without commands before it" % line)
            steps[-1].output = tuple(content)
            steps[-1].output_line = line + 1
    if head is None:
        raise PageError("there is no <!-- guide: ... --> at the top")
    return Page(name, *head, steps)


def matches(promised, printed):
    """For each promised line the printed one that it is like, or None if the line is left out; of
    what is missing, the first line as a string instead."""
    found = []
    shapes = [shape(line) for line in printed]
    at = 0
    for line in promised:
        if line.strip() in LEFT_OUT or not line.strip():
            found.append(None)
            continue
        wanted = shape(line)
        place = next((place for place in range(at, len(shapes)) if shapes[place] == wanted), None)
        if place is None:
            return line
        found.append(printed[place])
        at = place + 1
    return found


def renewed(text, page, printed):
    """The text of the page with what its commands printed in place of what they printed once; a
    block of `...` alone becomes all that was printed."""
    lines = text.split("\n")
    for step in reversed(page.steps):
        if not step.output:
            continue
        begin = step.output_line - 1
        end = begin + len(step.output)
        said = [line.rstrip() for line in printed[step.line]]
        if step.output == ("...",):
            lines[begin:end] = "\n".join(said).strip("\n").split("\n")
            continue
        found = matches(step.output, said)
        if not isinstance(found, str):
            pairs = zip(step.output, found)
            lines[begin:end] = [old if new is None else new for old, new in pairs]
    return "\n".join(lines)
