"""Pages about batches: the numbers of the ledger, each state, and jobs of long ago."""

from __future__ import annotations

import os
import sqlite3

import pytest

import delegraph as package
from delegraph.partition.disk.lock import locked
from delegraph.pipeline.batches.ledger import Entry, folder_of, ledger_of, try_of
from delegraph.pipeline.reports.numbers import UNKNOWN, duration, figure, size
from delegraph.pipeline.reports.page.page import render
from delegraph.pipeline.reports.page.scales import moments
from delegraph.pipeline.reports.page.write import page_of
from support.batches import every_state, tried, write_batch
from support.pages import PageText

CAPTION = "Jobs, and the last try of each; times are UTC"
HOSTILE = "</title><script>alert('1')</script>\"&amp;\x07\u202e"


@pytest.fixture
def batch(tmp_path):
    return lambda *entries: write_batch(tmp_path / "jobs.toml", *entries)


def page(path) -> PageText:
    return PageText(render(page_of(path)))


def figures(html: PageText) -> dict[str, list[str]]:
    """Return the text and the note under each name."""
    pairs = html.root.findall(".//dl[@class='figures']/div")
    words = (["".join(item.itertext()).strip() for item in pair.findall("dd/*")] for pair in pairs)
    return {pair.findtext("dt", ""): texts for pair, texts in zip(pairs, words, strict=True)}


def lanes(html: PageText) -> dict[str, tuple[str, str]]:
    """Return the state and the note of each job's row, by the whole name."""
    rows = {}
    for item in html.root.findall(".//ol[@class='lanes']/li"):
        spans = {span.get("class"): span for span in item.findall("span")}
        note = spans["note"].text if "note" in spans else ""
        rows[spans["name"].get("title")] = (spans["state"].text, note)
    return rows


def every_bar(html: PageText) -> dict[str, list[tuple[str, float, float, float]]]:
    """Return the bars of each job: kind, begin and length in per cent, height in pixels; a torn bar
    has neither length nor height.
    """
    drawn_bars = {}
    for item in html.root.findall(".//ol[@class='lanes']/li"):
        for drawing in item.findall("svg/*"):
            (mark,) = [drawing] if drawing.tag == "rect" else drawing.findall("path")
            name = mark.findtext("title", "").partition(",")[0]
            assert name == item.findall("span")[0].get("title")
            x, width = (float((drawing.get(key) or "0").rstrip("%")) for key in ("x", "width"))
            bar = (mark.get("class"), x, width, float(mark.get("height") or 0))
            if float(x) < 100:  # else the point of a running job's bar
                drawn_bars.setdefault(name, []).append(bar)
    return drawn_bars


def bars(html: PageText) -> dict[str, tuple[str, float, float]]:
    """Return the kind, begin and length of each job's last bar."""
    return {name: some[-1][:3] for name, some in every_bar(html).items()}


def test_numbers_are_those_of_the_ledger(batch):
    entries = every_state()
    html = page(batch(*entries))
    rows = {row[0]: row[1:] for row in html.tables[CAPTION]}
    assert rows.keys() == {entry.name for entry in entries}
    for entry in entries:
        state, began, ended, seconds, tries, held = rows[entry.name]
        assert state == ("cut off" if entry.state == "running" else entry.state)
        for cell, time in ((began, entry.began), (ended, entry.ended)):
            if time is not None:
                assert cell == f"{time[:10]} {time[11:19]}"
        if entry.seconds is not None:
            assert seconds == duration(entry.seconds)
        if entry.peak_bytes is not None:
            assert held == size(entry.peak_bytes)
        assert tries == figure(entry.attempts)
    assert rows["between"][2:] == ["not known", "not known", "1", "not known"]
    assert rows["page"][1:] == ["-", "-", "-", "0", "-"]
    spent = sum(entry.seconds or 0 for entry in entries[1:])
    assert figures(html) == {
        "jobs": ["9", "the batch does not run"],
        "done": ["3", "33.3%"],
        "failed": ["1", ""],
        "left out": ["1", ""],
        "waiting": ["3", ""],
        "cut off": ["1", ""],
        "first begin to last end": [
            duration(89.8 * 60),
            f"of 6 jobs, one after the other {duration(spent)}",
        ],
        "most memory": [size(6_200_000_000), "store"],
    }


def test_each_state(batch):
    """Each state has a word and a form of bar; the bar of a running job is cut off if nobody runs
    the job.
    """
    jobs = batch(*every_state())
    html = page(jobs)
    drawn = bars(html)
    assert {name: kind for name, (kind, _, _) in drawn.items()} == {
        "parts": "done",
        "ranks-of-europe-and-all-the-rest-2026": "done",
        "close": "failed",
        "far": "waiting",
        "saved": "waiting",
        "between": "cut-off",
    }
    whole = 89.8
    for name, began, minutes in (("parts", 0, 8.2), ("close", 41, 21.5), ("far", 20, 10)):
        assert drawn[name][1:] == pytest.approx((100 * began / whole, 100 * minutes / whole), 1e-3)
    assert drawn["between"][1:] == pytest.approx((100 * 75 / whole, 0), 1e-3)
    for words in (
        "ranks-of-eu\u2026he-rest-2026 done",
        "between cut off",
        "A bar with a torn end is a try whose end is not known.",
        "When these jobs ended, because their batch was killed: between.",
        "check left out a job that it needs has failed",
        "page waiting it has not begun",
    ):
        assert words in html.text
    short = "exit code 75: something that it needs was not available"
    assert html.facts["close"] == f"too little memory ({short}, 3 tries)"
    lost = "its last try: worker tcp://10.0.0.3:2222 is lost (exit code 1)"
    assert html.facts["far"] == lost
    assert lanes(html)["close"] == ("failed", f"too little memory ({short})")
    assert lanes(html)["far"] == ("waiting", lost)
    assert lanes(html)["parts"] == ("done", "")
    assert html.facts["waiting"] == "for their turn, until the batch is run: far, saved, page"
    with locked(folder_of(jobs), jobs):
        html = page(jobs)
    assert figures(html)["running"] == ["1", ""]
    assert bars(html)["between"][:2] == ("running", drawn["between"][1])
    assert "Jobs that are running have bars with a point." in html.text
    assert "cut off" not in html.text
    assert "Not known" not in html.text


def test_jobs_of_long_ago_do_not_squeeze_those_of_today(batch):
    html = page(batch(*every_state()))
    assert "store done ended 2026-06-12 05:30:00, before this axis" in html.text
    assert "longer than 5 minutes and longer than all the time after it" in html.text
    assert "Earlier, and without a bar: 1 job." in html.text


@pytest.mark.parametrize(
    ("times", "drawn"),
    [
        (((0, 60), (120, 30), (151, 31)), 3),  # a pause as long as all that follows it
        (((0, 60), (125, 30), (157, 31)), 2),
        (((0, 60), (64, 1), (70.5, 1)), 1),
        (((0, 60), (64, 1), (69.5, 1)), 3),  # as between two tries
        (((0, 200), (10, 1), (190, 1)), 3),  # one that goes on all the time
        (((0, 1), (10, None), (500, 1)), 1),
        (((5, 0),), 1),
    ],
)
def test_where_the_axis_begins(batch, times, drawn):
    entries = [tried(f"job-{i}", "done", *time) for i, time in enumerate(times)]
    html = page(batch(*entries))
    assert list(bars(html)) == [entry.name for entry in entries[-drawn:]]
    assert min(x for _, x, _ in bars(html).values()) == 0


def test_before_anything_has_begun(batch):
    html = page(batch(Entry("one", "waiting"), Entry("two", "failed", error="cannot begin: no")))
    assert "No job has begun." in html.text
    assert not html.root.findall(".//figure")
    assert html.facts["two"] == "cannot begin: no (0 tries)"


def test_very_many_jobs(batch):
    html = page(batch(*(tried(f"job-{i}", "done", i, 1 + i % 7) for i in range(300))))
    assert len(html.tables[CAPTION]) == 300
    drawn = bars(html)
    assert len(drawn) == 100
    assert "Only 100 of 300 jobs are drawn" in html.text
    assert all(int(name[4:]) % 7 > 3 for name in drawn)


def test_failed_jobs_are_drawn_among_very_many(batch):
    failures = [
        Entry("never", "failed", error="cannot begin: no"),
        tried("old", "failed", -9000, 1, exit_code=2),
        tried("short", "failed", 3, 0.1, exit_code=2),
    ]
    others = [tried(f"job-{i}", "done", i, 1 + i % 7) for i in range(300)]
    rows = lanes(page(batch(*others, *failures)))
    assert len(rows) == 100
    assert rows["never"] == ("failed", "cannot begin: no")
    assert rows["old"][1].startswith("exit code 2: wrong use or bad input; ended 2026-06-26")
    assert rows["short"] == ("failed", "exit code 2: wrong use or bad input")


def test_round_times():
    for first in (0, 1_782_000_000 + 3599):
        for span in (*range(1, 300), *(7**power for power in range(3, 11))):
            marks = moments(first, first + span)
            assert 1 <= len(marks) <= 5
            assert all(first <= at <= first + span for at, _ in marks)
            assert len({name for _, name in marks}) == len(marks)


def test_nothing_of_a_ledger_is_markup(tmp_path):
    entries = [
        tried(HOSTILE, "failed", 0, 1, error=HOSTILE),
        tried(f"{HOSTILE}2", "waiting", 0, error=HOSTILE),
        Entry(f"{HOSTILE}3", "left out"),
        tried(f"{HOSTILE}4", "running", 0),
    ]
    html = page(write_batch(tmp_path / "<b onload='x'>&\".toml", *entries))
    assert html.text.count("<script>") >= 8
    assert "\\x07\\u202e" in html.text
    assert html.root.findtext("body/header/h1") == "<b onload='x'>&\".toml"


def test_by_its_file_or_its_folder(batch, tmp_path):
    """Both paths give equal pages; only the ledger is read."""
    jobs = batch(*every_state())
    before = ledger_of(jobs).read_bytes(), sorted(os.listdir(folder_of(jobs)))
    first = render(page_of(jobs))
    assert render(page_of(folder_of(jobs))) == first
    jobs.unlink()
    assert render(page_of(jobs)) == first
    assert (ledger_of(jobs).read_bytes(), sorted(os.listdir(folder_of(jobs)))) == before
    with pytest.raises(package.InputError, match="lies in the input's folder"):
        package.report(folder_of(jobs), folder_of(jobs) / "page.html")


def test_every_try_is_told(tmp_path):
    """Tries since the job was last done are told, without the last one; a running try is not among
    the tries. All of them are drawn, the last one with a thicker bar.
    """
    first = tried("between", "running", 10)
    second = tried("between", "failed", 40, 20, exit_code=75, error="too little memory")
    third = tried("between", "failed", 62, 8, exit_code=143)
    last = tried("between", "running", 75)
    once = tried("store", "done", 0, 90)
    tries = [
        try_of(first, "running"),
        try_of(second, "failed"),
        try_of(third, "ended"),
        try_of(last, "running"),
        try_of(once, "done"),
    ]
    html = page(write_batch(tmp_path / "jobs.toml", once, last, tries=tries))
    rows = {row[0]: row for row in html.tables[CAPTION]}
    assert [rows[name][5] for name in ("store", "between")] == ["1", "4"]
    earlier = html.tables["Tries before the last one of each job; times are UTC"]
    assert [row[:3] for row in earlier] == [
        ["between", "1", "cut off"],
        ["between", "2", "failed"],
        ["between", "3", "ended"],
    ]
    assert earlier[0][4:] == [UNKNOWN, UNKNOWN, UNKNOWN, "-"]
    assert earlier[1][7] == "too little memory"
    assert earlier[2][7] == "exit code 143: ended by SIGTERM or SIGUSR1"
    drawn = every_bar(html)
    assert [kind for kind, *_ in drawn["between"]] == ["cut-off", "failed", "ended", "cut-off"]
    assert [begin for _, begin, *_ in drawn["between"]] == pytest.approx(
        [100 * began / 90 for began in (10, 40, 62, 75)], 1e-3
    )
    assert drawn["between"][1][2:] == (pytest.approx(100 * 20 / 90, 1e-3), 6)
    assert drawn["store"] == [("done", 0, 100, 12)]
    assert "between, try 2, failed: 2026-07-03 00:30:00 to 2026-07-03 00:50:00" in html.text
    assert "ended by a signal" in html.text
    assert "Tries before the last one of a job have thin bars." in html.text
    spent = duration((90 + 20 + 8) * 60)
    assert figures(html)["first begin to last end"][1] == f"of 2 jobs, one after the other {spent}"
    alone = page(write_batch(tmp_path / "other.toml", once)).text
    assert "Earlier tries" not in alone
    assert "thin bars" not in alone


def test_tries_of_an_earlier_night_are_counted(tmp_path):
    tries = [tried("ranks", "failed", began, 2, exit_code=1) for began in (-1440, -1430, 0)]
    told = [try_of(one, "failed") for one in tries]
    html = page(write_batch(tmp_path / "jobs.toml", tries[-1], tries=told))
    assert every_bar(html) == {"ranks": [("failed", 0, 100, 12)]}
    assert "Earlier, and without a bar: 2 tries of jobs with a bar." in html.text


def test_a_job_that_a_signal_ended(tmp_path):
    """The ledger keeps the end of such a job only with its last try."""
    job = tried("ranks", "waiting", 0, attempts=0)
    ended = try_of(tried("ranks", "waiting", 0, 10, exit_code=143), "ended")
    html = page(write_batch(tmp_path / "jobs.toml", job, tries=[ended]))
    assert every_bar(html) == {"ranks": [("ended", 0, 100, 12)]}
    told = "its last try: exit code 143: ended by SIGTERM or SIGUSR1"
    assert lanes(html) == {"ranks": ("waiting", told)}
    assert html.facts["ranks"] == told


NEEDS = """
[[job]]
name = "ranks"
needs = ["store"]
[[job]]
name = "top"
needs = ["ranks", "paths", "parts"]
[[job]]
name = "paths"
needs = ["roads"]
"""


@pytest.fixture
def left_out(batch):
    """Write a batch of which two jobs have failed and three were left out."""
    return batch(
        tried("store", "failed", 0, 1, exit_code=75, error="busy"),
        tried("roads", "failed", 0, 1, exit_code=2, error="no weights"),
        tried("parts", "done", 0, 1),
        *(Entry(name, "left out") for name in ("ranks", "paths", "top")),
    )


def test_the_failure_behind_a_job_that_was_left_out(left_out):
    left_out.write_text(NEEDS)
    html = page(left_out)
    assert {name: note for name, (state, note) in lanes(html).items() if state == "left out"} == {
        "paths": "because roads failed",
        "ranks": "because store failed",
        "top": "because store, roads failed",
    }
    assert html.facts["left out"] == (
        "because roads failed: paths; because store failed: ranks; because store, roads failed: top"
    )


@pytest.mark.parametrize(
    "text",
    [
        None,
        "[[job]",
        "job = 3",
        "job = [3]",
        "[[job]]\nname = 3\nneeds = ['store']",
        "[[job]]\nname = 'ranks'\nneeds = 'store'",
        "[[job]]\nname = 'ranks'\nneeds = [3, 'parts', 'gone']",
        "[[job]]\nname = 'ranks'\nneeds = ['top']\n[[job]]\nname = 'top'\nneeds = ['ranks']",
    ],
)
def test_a_file_of_jobs_that_does_not_tell(left_out, text):
    left_out.unlink()
    if text is not None:
        left_out.write_text(text)
    notes = {note for state, note in lanes(page(left_out)).values() if state == "left out"}
    assert notes == {"a job that it needs has failed"}


def test_a_long_error(batch):
    """A row has the ends of a long error, and the whole error where it is pointed at."""
    error = f"/data/{'graphs/' * 50}roads.dg: no weights: build it again with --weight COL"
    html = page(batch(tried("paths", "failed", 0, 1, exit_code=2, error=error)))
    whole = f"{error} (exit code 2: wrong use or bad input)"
    (note,) = html.root.findall(".//ol[@class='lanes']/li/span[@class='note']")
    assert note.get("title") == whole
    shown = note.text or ""
    assert len(shown) <= 110
    assert shown.startswith("/data/")
    assert shown.endswith("(exit code 2: wrong use or bad input)")
    assert error in html.root.findtext(".//ol[@class='lanes']/li/svg/rect/title", "")
    assert error in html.facts["paths"]


def changed(statement):
    def change(path):
        ledger = sqlite3.connect(path)
        with ledger:
            ledger.execute(statement)
        ledger.close()

    return change


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.unlink(), "no batch has run here"),
        (changed("delete from jobs"), "no batch has run here"),
        (lambda path: path.write_bytes(b""), "no batch has run here"),
        (lambda path: path.write_bytes(b"no ledger" * 1000), "damaged, or not a ledger"),
        (lambda path: path.write_bytes(path.read_bytes()[:9000]), "damaged, or not a ledger"),
        (changed("drop table jobs"), "damaged, or not a ledger"),
        (changed("update batch set version = 1"), "a ledger of version 1"),
        (changed("update jobs set state = 'flying'"), "a job's 'state' is 'flying'"),
        (changed("update jobs set began = 'yesterday'"), "'yesterday'"),
        (changed("update jobs set ended = '9999-12-31T23:59:59+00:00'"), "a job's 'ended' is"),
        (changed("update jobs set began = '2026-07-01T00:00:00'"), "a job's 'began' is"),
        (changed("update jobs set seconds = 'long'"), "a job's 'seconds' is 'long'"),
        (changed("update jobs set seconds = 9e999"), "a job's 'seconds' is inf"),
        (changed("update jobs set peak_bytes = x'00'"), "a job's 'peak_bytes' is"),
        (
            changed("insert into tries (name, state, began) values ('a', 'flying', '2026-07-01')"),
            "a job's 'state' is 'flying'",
        ),
        (
            changed("insert into tries (name, state, began) values ('a', 'done', 'yesterday')"),
            "'yesterday'",
        ),
        (changed("update jobs set error = cast(x'ff' as text)"), "damaged, or not a ledger"),
    ],
)
def test_a_ledger_that_is_not_ours(delegraph, batch, tmp_path, damage, reason):
    jobs = batch(*every_state())
    damage(ledger_of(jobs))
    run = delegraph("report", jobs, "-o", tmp_path / "page.html")
    assert run.code == 2
    (line,) = run.err.splitlines()
    assert reason in line
    assert not (tmp_path / "page.html").exists()
