"""check_subjects.py: subjects of commits are orders, and say of what.

    check_subjects.py TOP [FIRST..LAST]   checks these commits, without them the last one
    check_subjects.py --self-test         checks that each kind of defect is found

A subject is `module: order`, of at most 72 characters and without a full stop; the order begins
with a verb: "reclaim: count clean pages of a run". A body follows after an empty line. No script
knows all verbs: it knows words that are none, and endings that an order does not have. Merges are
left out; a revert has the subject that git gives it, and a body. If FIRST is 0000..., as for a new
branch, the last commit is checked alone.
"""

import re
import subprocess
import sys

MAX_SUBJECT = 72
SUBJECT = re.compile(r"^([\w.+/-]+(?:, [\w.+/-]+)*): (\S.*)$")
REVERT = re.compile(r'^Revert ".+"$')
# Words with which no order begins.
NO_ORDERS = set(
    "a an the this that these those it its they their he she we our you your i my there here "
    "no not none nothing what who which when where why how if as because while "
    "one two three some any each every all both more most less fewer several "
    "is are was were has have had does did can could may might must shall should will would "
    "of in on at to from for with without by about after before between behind under over into "
    "new old better faster slower smaller larger wrong right correctly "
    "and or but also now then later still already only just finally "
    "wip todo fixup squash format-only various misc minor small typo typos stuff cleanup".split())
# How orders do not end: third person, past, and what is going on.
ENDINGS = re.compile(r"(?:[^s]s|ed|ing|tion|ment|ness)$")
# Orders that end so all the same.
ORDERS = set(
    "bias focus alias embed feed need seed heed speed shed shred exceed proceed succeed bring ring "
    "string swing cling mention question position caution condition document implement comment "
    "supplement witness harness".split())


def defect(message):
    """What is wrong with a message, or None."""
    subject, _, rest = message.partition("\n")
    if len(subject) > MAX_SUBJECT:
        return "has %d characters, more than %d" % (len(subject), MAX_SUBJECT)
    if subject.endswith("."):
        return "ends with a full stop"
    if not REVERT.match(subject):
        found = SUBJECT.match(subject)
        if not found:
            return "is not of the form `module: order`"
        word = re.match(r"[\w'-]*", found[2])[0].lower()
        if word in NO_ORDERS or word not in ORDERS and ENDINGS.search(word) or not word.isalpha():
            return "begins with %r, which is no order" % (word or found[2].split()[0])
    if rest and not rest.startswith("\n"):
        return "is not followed by an empty line"
    if not rest.strip():
        return "has no body"
    return None


def messages(top, commits):
    """(commit, message) of those that are no merges."""
    if commits.startswith("0" * 40):
        commits = "-1 " + commits.partition("..")[2]
    said = subprocess.run(["git", "-C", top, "log", "--no-merges", "--format=%h%n%B%x00",
                           *commits.split()], stdout=subprocess.PIPE, check=True).stdout
    for part in said.decode("utf-8").split("\0"):
        if part.strip():
            commit, _, message = part.strip("\n").partition("\n")
            yield commit, message


def self_test():
    body = "\n\nWhy.\n"
    for message, expected in (
            ("reclaim: count clean pages of a run" + body, None),
            ("crates, tests: Keep files to 400 lines" + body, None),
            ("a/b.c: bring it home" + body, None), ('Revert "x: say y"' + body, None),
            ("x: need less" + body, None), ("x: pass it on" + body, None),
            ("x: " + "say " * 17 + "y" + body, None),
            ("x: " + "say " * 17 + "yy" + body, "73 characters"),
            ("x: say y." + body, "full stop"), ("count clean pages" + body, "form"),
            ("x: what is clean is counted" + body, "'what'"),
            ("x: counts pages" + body, "'counts'"),
            ("x: counted pages" + body, "'counted'"), ("x: counting pages" + body, "'counting'"),
            ("x: the pages" + body, "'the'"), ("x: 3 pages" + body, "'3'"), ("wip" + body, "form"),
            ("x: say y", "no body"), ("x: say y\n\n", "no body"),
            ("x: say y\nWhy.\n", "empty line")):
        found = defect(message)
        assert found is None if expected is None else expected in (found or ""), (message, found)
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    top, commits = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "-1 HEAD"
    count = failures = 0
    for commit, message in messages(top, commits):
        count += 1
        wrong = defect(message)
        if wrong:
            print("%s: %r %s" % (commit, message.partition("\n")[0], wrong))
            failures += 1
    print("%d commits, %d of them with a defect" % (count, failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
