"""The results of run_platforms.py as text, and as the generated part of README.md."""

BEGIN, END = "<!-- platforms:begin -->", "<!-- platforms:end -->"
HEAD = ("Platform", "What", "Compiler", "Tests", "Passed", "Failed", "Reports", "Left out")


def cells(result):
    """A row of the table."""
    if result["state"] != "run":
        reason = result["problem"].splitlines()[0] if result["state"] == "not run" else ""
        return (result["name"], result["what"], result.get("compiler", ""),
                f"{result['state']}: {reason}".rstrip(": "), "", "", "", "")
    ran = len(result["passed"]) + len(result["failed"])
    return (result["name"], result["what"], result["compiler"], str(ran),
            str(len(result["passed"])), str(len(result["failed"])), str(len(result["reports"])),
            str(len(result["skipped"])))


def line(result):
    """What is said when a platform is done."""
    if result["state"] != "run":
        return f"  {result['state']}: {result['problem'][:300]}"
    return (f"  {len(result['passed'])} passed, {len(result['failed'])} failed, "
            f"{len(result['reports'])} reports, {len(result['skipped'])} left out, "
            f"{result['seconds']} s")


def text(results):
    rows = [HEAD] + [cells(result) for result in results]
    widths = [max(len(row[column]) for row in rows if row[3][:1].isdigit() or row is HEAD)
              for column in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                     for row in rows)


def by_reason(result):
    """The tests that were left out, gathered by reason."""
    reasons = {}
    for name, reason in result["skipped"]:
        reasons.setdefault(reason, []).append(name)
    return reasons


def markdown(results):
    lines = ["| " + " | ".join(HEAD) + " |", "|---|---|---|" + "--:|" * 5]
    lines += ["| " + " | ".join(cells(result)) + " |" for result in results]
    lines += ["", "What was left out, and why:", ""]
    for result in results:
        for reason, names in by_reason(result).items():
            lines.append(f"- {result['name']}: {', '.join(f'`{name}`' for name in names)}: "
                         f"{reason}.")
    inner = [f"- {result['name']}: {', '.join(f'`{case}`' for case in result['skipped_cases'])}"
             for result in results if result["skipped_cases"]]
    if inner:
        lines += ["", "Cases that skip themselves inside of a test that ran:", "", *inner]
    return "\n".join(lines)


def write(file, results, platforms):
    """Replaces what stands between the marks."""
    if {result["name"] for result in results} != {platform.name for platform in platforms}:
        raise SystemExit(f"{file} is written from the results of all platforms, not of some")
    old = file.read_text(encoding="utf-8")
    if BEGIN not in old or END not in old:
        raise SystemExit(f"{file} lacks the marks {BEGIN} and {END}")
    before, rest = old.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    file.write_text(f"{before}{BEGIN}\n\n{markdown(results)}\n\n{END}{after}", encoding="utf-8")
