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


def bars(html: PageText) -> dict[str, tuple[str, float, float]]:
    """Return each job's kind, begin and length, in per cent; a torn bar has no length."""
    drawn_bars = {}
    for drawing in html.root.findall(".//figure/svg[@class='chart']/g/*"):
        mark = drawing if drawing.tag == "rect" else drawing.find("path")
        if mark is not None:
            name = mark.findtext("title", "").partition(",")[0]
            x, width = (float((drawing.get(key) or "0").rstrip("%")) for key in ("x", "width"))
            drawn_bars.setdefault(name, (mark.get("class"), x, width))
    return drawn_bars


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
        "ranks-of-eu\u2026he-rest-2026: done",
        "between: cut off",
        "A bar with a torn end is a try whose end is not known.",
        "When these jobs ended, because their batch was killed: between.",
        "check: left out a job that it needs has failed",
        "page: waiting it has not begun",
    ):
        assert words in html.text
    assert html.facts["close"] == "too little memory (exit code 75, 3 tries)"
    assert html.facts["far"] == "its last try: worker tcp://10.0.0.3:2222 is lost"
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
    assert "store: done ended 2026-06-12 05:30:00, before this axis" in html.text
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
    assert "Only the 100 longest bars of 300 jobs are drawn." in html.text
    assert all(int(name[4:]) % 7 > 3 for name in drawn)


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
    the tries.
    """
    first = tried("between", "running", 10)
    second = tried("between", "failed", 40, 20, exit_code=75, error="too little memory")
    last = tried("between", "running", 75)
    once = tried("store", "done", 0, 9)
    tries = [
        try_of(first, "running"),
        try_of(second, "failed"),
        try_of(last, "running"),
        try_of(once, "done"),
    ]
    html = page(write_batch(tmp_path / "jobs.toml", once, last, tries=tries))
    rows = {row[0]: row for row in html.tables[CAPTION]}
    assert [rows[name][5] for name in ("store", "between")] == ["1", "3"]
    earlier = html.tables["Tries before the last one of each job; times are UTC"]
    assert [row[:3] for row in earlier] == [
        ["between", "1", "cut off"],
        ["between", "2", "failed"],
    ]
    assert earlier[0][4:] == [UNKNOWN, UNKNOWN, UNKNOWN, "-"]
    assert earlier[1][7] == "too little memory"
    assert "Earlier tries" not in page(write_batch(tmp_path / "other.toml", once)).text


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
