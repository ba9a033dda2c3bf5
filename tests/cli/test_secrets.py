"""Secrets in URLs are shown nowhere, for any command."""

from __future__ import annotations

import pytest

import delegraph as package
from delegraph.partition.disk import remote
from delegraph.partition.disk.urls import url_of
from delegraph.partition.errors import DelegraphError, InputError
from support.marks import mostly_slow

SECRET = ("topsecret", "half")
URLS = [
    "s3://KEYID:topsecret@bucket/edges",
    "s3://KEYID:topsecret/half@bucket/edges",
    "s3://KEYID:topsecret?half@bucket/edges",
    "s3://KEYID:tops/topsecret@half@bucket/edges",
    "s3://KEYID:topsecret/half",
    "s3://bucket/edges?secret_key=topsecret",
    "s3://bucket/edges?region=eu&secret_key=topsecret/?half&half",
    "s3://bucket/edges?access_key=ID&secret_key=topsecret",
    "s3://bucket/edges?endpoint_override=me:topsecret@host:9000",
    "s3://bucket/edges?endpoint_override=http://me:topsecret/half@host:9000",
    "s3://bucket/edges?X-Amz-Signature=topsecret",
    "gs://key:topsecret/half@bucket/edges",
    "abfs://container:topsecret/half@account/edges",
    "abfs://container@account/edges?sig=topsecret%2Fhalf",
    "s3n://KEYID:topsecret@bucket/edges",
    "S3://KEYID:topsecret/half@bucket/edges",
    "s3:/KEYID:topsecret/half@bucket/edges",
    "http://me:topsecret@host/edges.parquet",
]
COMMANDS = {
    "build": "build {url} -o {folder}/out",
    "build to": "build {edges} -o {url}",
    "bfs": "bfs {url} --source 1 -o {folder}/out",
    "bfs to": "bfs {edges} --source 1 -o {url}",
    "sources": "bfs {edges} --sources {url} -o {folder}/out",
    "profile": "bfs {edges} --source 1 --profile {url} -o {folder}/out",
    "scratch": "build {edges} --scratch {url} -o {folder}/out",
    "pagerank": "pagerank {url} -o {folder}/out",
    "plan": "plan {url}",
    "info": "info {url}",
    "info, json": "info {url} --json",
    "validate": "validate {edges} {url}",
    "report": "report {url} -o {folder}/page.html",
    "report to": "report {edges} -o {url}",
    "convert": "convert {url} -o {folder}/out",
    "convert to": "convert {edges} -o {url}",
    "generate": "generate kronecker --scale 4 -o {url}",
    "bench": "bench {url}",
    "batch": "batch run {url}",
    "too many": "info {edges} {url}",
    "no number": "bfs {edges} --source 1 --threads {url} -o {folder}/out",
    "no option": "info --{url}",
    "no choice": "build {edges} --order {url} -o {folder}/out",
    "scheduler": "build {edges} --workers {url} -o {folder}/out",
}


def no_secret(text: str) -> bool:
    return not any(part in text for part in SECRET)


@pytest.mark.parametrize("name", mostly_slow(COMMANDS, *list(COMMANDS)[::3]))
def test_a_command(delegraph, edge_list, tmp_path, monkeypatch, name):
    """Each way to write a secret into a URL is hidden; with events, a heartbeat and tracebacks,
    too.
    """
    monkeypatch.chdir(tmp_path)
    edges = edge_list([1, 2], [2, 3])
    heartbeat = tmp_path / "beat.json"
    for url in URLS:
        words = COMMANDS[name].format(url=url, edges=edges, folder=tmp_path).split(" ")
        loud = ["--log-format", "json", "--heartbeat", heartbeat, "--debug"]
        knows = words[0] in ("build", "bfs", "pagerank")
        for more in ([], ["--debug"], loud if knows else []):
            run = delegraph(*words, *more)
            assert run.code in (1, 2), url
            assert no_secret(run.out), url
            assert no_secret(run.err), url
        assert not heartbeat.exists() or no_secret(heartbeat.read_text())
    names = {path.name for path in tmp_path.iterdir()}
    assert names <= {edges.name, "beat.json"}


@pytest.mark.parametrize("url", URLS)
def test_python(url):
    for call in (package.open, package.info, lambda url: package.build("none", url)):
        with pytest.raises(DelegraphError) as error_info:
            call(url)
        assert no_secret(str(error_info.value))


def test_a_batch(delegraph, edge_list, tmp_path, monkeypatch):
    """A batch with a secret in a URL is refused before any job runs, and neither log nor ledger
    keeps the secret.
    """
    monkeypatch.chdir(tmp_path)
    edges = edge_list([1, 2], [2, 3])
    jobs = tmp_path / "jobs.toml"
    for url in (url for url in URLS if "://" in url):  # else it is a folder's name
        graph_job = f'command = "bfs"\ngraph = "{url}"\nsource = 1\noutput = "out"\n'
        other = f'command = "bfs"\ngraph = "{edges}"\nsource = 1\noutput = "{url}"\n'
        for job in (graph_job, other):
            jobs.write_text(f'[[job]]\nname = "one"\n{job}')
            for args in (("batch", "run", jobs), ("batch", "plan", jobs, "--json")):
                run = delegraph(*args)
                assert run.code in (1, 2), (url, run)
                assert no_secret(run.out + run.err), url
            files = [path for path in tmp_path.rglob("*") if path.is_file() and path != jobs]
            assert all(no_secret(path.read_bytes().decode(errors="replace")) for path in files)


def test_what_a_library_quotes(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "topsecret")
    text = "AWS Error ACCESS_DENIED at https://b.host/k?X-Amz-Signature=half: topsecret"
    message = str(remote._told(url_of("s3://bucket/key"), text))
    assert no_secret(message)
    assert "https://b.host/k?X-Amz-Signature=..." in message


@pytest.mark.parametrize(
    "name",
    [
        "s3://bucket/user@example.com/part-?.parquet",
        "s3://anonymous@bucket/edges",
        "s3://bucket/edges?endpoint_override=http://127.0.0.1:9000",
        "abfs://container@account.dfs.core.windows.net/edges",
    ],
)
def test_names_without_secrets_are_shown_whole(name):
    assert str(InputError(f"{name}: gone")) == f"{name}: gone"
    assert str(url_of(name)) == name
