"""Weights by name: from servers on this machine, in the layouts of those that publish them."""

import hashlib
import json
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from huggingface_hub import constants  # noqa: E402

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.methods.networks import pretrained_resnet, published, read_weights, weights_file  # noqa: E402

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def tiny(**more):
    return transformers.ResNetConfig(embedding_size=4, hidden_sizes=[8, 16], depths=[1, 1], **more)


@pytest.fixture
def server(monkeypatch):
    """Files by path; like the hub, it tells their commit and their digest. `asked` lists what is fetched."""
    files, asked = {}, []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_HEAD(self):
            body = files.get(self.path)
            self.send_response(404 if body is None else 200)
            if body is None:
                known = any(path.startswith(self.path.partition("/resolve/")[0] + "/") for path in files)
                self.send_header("X-Error-Code", "EntryNotFound" if known else "RepoNotFound")
            else:
                self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
                self.send_header("X-Repo-Commit", COMMIT)
                self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()

        def do_GET(self):
            asked.append(self.path)
            self.do_HEAD()
            self.wfile.write(files.get(self.path, b""))

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("setsup.files.downloads.transfer._WAITS", (0.0, 0.0))
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.files, running.asked, running.url = files, asked, f"http://127.0.0.1:{running.server_address[1]}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A cache folder of one test alone."""
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pretrained"


def publish(monkeypatch, url, algorithm, digits):
    monkeypatch.setitem(published._PUBLISHED, "tiny", published._Published(url, algorithm, digits))


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_a_published_file_is_fetched_once(tmp_path, own, server, monkeypatch, algorithm):
    network = transformers.ResNetModel(tiny())
    torch.save(network.state_dict(), tmp_path / "saved.pth")
    body = (tmp_path / "saved.pth").read_bytes()
    server.files["/models/tiny-1.pth"] = body
    publish(monkeypatch, f"{server.url}/models/tiny-1.pth", algorithm, hashlib.new(algorithm, body).hexdigest()[:8])
    for _ in range(2):
        found = pretrained_resnet("tiny", tiny())
        for name, weight in network.state_dict().items():
            assert torch.equal(found.state_dict()[name], weight)
    assert server.asked == ["/models/tiny-1.pth"]
    assert weights_file("tiny") == own / "tiny-1.pth"
    assert (own / "tiny-1.pth").read_bytes() == body
    assert list(read_weights("tiny")) == list(network.state_dict())


def test_another_file_than_the_published_one_is_refused(own, server, monkeypatch):
    server.files["/tiny-1.pth"] = b"something else"
    publish(monkeypatch, f"{server.url}/tiny-1.pth", "sha256", "0" * 8)
    with pytest.raises(DataError, match=r"the sha256 of .*tiny-1\.pth must start with 00000000, but is \w{64}; remove"):
        weights_file("tiny")


def test_a_file_that_cannot_be_fetched_can_be_put_there(own, server, monkeypatch):
    body = b"by hand"
    publish(monkeypatch, f"{server.url}/gone.pth", "md5", hashlib.md5(body).hexdigest()[:8])
    with pytest.raises(DataError, match=r"tiny: gone\.pth could not be downloaded: .*HTTP 404.* move it to ") as caught:
        weights_file("tiny")
    assert str(own / "gone.pth") in str(caught.value)
    (own / "gone.pth").write_bytes(body)
    assert weights_file("tiny").read_bytes() == body


def test_addresses_are_those_that_were_published():
    """What the addresses and digests say of each other: torchvision names its files by the sha256."""
    lengths = {"resnet50-imagenet": 8, "vgg16-imagenet": 8, "resnet50-mocov2-800": 8, "resnet50v2-imagenet": 32}
    assert {name: len(one.digits) for name, one in published._PUBLISHED.items()} == lengths
    for url, _, digits in published._PUBLISHED.values():
        assert url.startswith("https://")
        assert int(digits, 16) >= 0
    imagenet = published._PUBLISHED["resnet50-imagenet"]
    assert imagenet.url.endswith(f"-{imagenet.digits}.pth")


@pytest.fixture
def hub(tmp_path, server, monkeypatch):
    """A hub on this machine, and a cache of huggingface_hub that is empty; both are read from constants."""
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    return server


def upload(server, folder, name="someone/tiny-resnet"):
    for path in folder.iterdir():
        server.files[f"/{name}/resolve/main/{path.name}"] = path.read_bytes()


@pytest.mark.parametrize("classifier", [False, True])
@pytest.mark.parametrize("packed", ["model.safetensors", "pytorch_model.bin"])
def test_a_repository_of_the_hub(tmp_path, hub, packed, classifier, monkeypatch):
    network = (transformers.ResNetForImageClassification if classifier else transformers.ResNetModel)(tiny())
    network.save_pretrained(tmp_path / "saved")
    if packed != "model.safetensors":
        (tmp_path / "saved" / "model.safetensors").unlink()
        torch.save(network.state_dict(), tmp_path / "saved" / packed)
    upload(hub, tmp_path / "saved")
    expected = (network.resnet if classifier else network).state_dict()
    for offline in (False, True):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
        found = pretrained_resnet("someone/tiny-resnet")
        assert found.config.hidden_sizes == [8, 16]
        assert found.state_dict().keys() == expected.keys()
        assert all(torch.equal(found.state_dict()[name], weight) for name, weight in expected.items())
        hub.files.clear()
    snapshot = tmp_path / "hub" / "models--someone--tiny-resnet" / "snapshots" / COMMIT
    assert weights_file("someone/tiny-resnet") == snapshot / packed


def test_a_folder_in_the_cache_is_enough(tmp_path, hub, monkeypatch):
    """The layout of the cache as it is documented, made without huggingface_hub."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    network = transformers.ResNetModel(tiny())
    repository = tmp_path / "hub" / "models--someone--tiny"
    network.save_pretrained(repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    weights = pretrained_resnet("someone/tiny").embedder.embedder.convolution.weight
    assert torch.equal(weights, network.embedder.embedder.convolution.weight)
    assert not hub.asked


@pytest.mark.parametrize("why", ["offline", "no such repository", "no weights", "nobody answers"])
def test_what_the_hub_does_not_give_is_one_sentence(tmp_path, hub, monkeypatch, why):
    if why == "offline":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    elif why == "no weights":
        hub.files["/someone/tiny/resolve/main/config.json"] = b"{}"
    elif why == "nobody answers":
        monkeypatch.setattr("time.sleep", lambda seconds: None)  # huggingface_hub tries six times
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", "http://127.0.0.1:9/{repo_id}/resolve/{revision}/{filename}"
        )
    with pytest.raises(DataError, match=r"`hf download someone/tiny`, or pass the path of a checkpoint") as caught:
        pretrained_resnet("someone/tiny")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (b"{", "does not describe a ResNet"),
        (b"[]", "does not describe a ResNet"),
        (b'{"architecture": "resnet50"}', "does not describe a ResNet"),
        (json.dumps({"model_type": "resnet", "layer_type": "x"}).encode(), "does not describe a ResNet"),
        (json.dumps({"model_type": "vit"}).encode(), "must contain a 'resnet' of transformers, not 'vit'"),
    ],
)
def test_other_networks_of_the_hub(tmp_path, hub, config, words):
    network = transformers.ResNetModel(tiny())
    network.save_pretrained(tmp_path / "saved")
    (tmp_path / "saved" / "config.json").write_bytes(config)
    upload(hub, tmp_path / "saved")
    with pytest.raises(DataError, match=f"someone/tiny-resnet {words}"):
        pretrained_resnet("someone/tiny-resnet")
    assert pretrained_resnet("someone/tiny-resnet", tiny()).config.depths == [1, 1]


def test_what_exists_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("someone/tiny", "resnet50-imagenet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        torch.save({"bn1.bias": torch.ones(4)}, name)
        assert list(read_weights(name)) == ["embedder.embedder.normalization.bias"]
    shutil.rmtree(tmp_path / "someone")
    for missing in ("runs/last.pth", "last.safetensors", "/a/b/c"):
        with pytest.raises(DataError, match="No such file"):
            read_weights(missing)


def test_unknown_names_are_told_near_ones():
    with pytest.raises(
        SetsupError, match="neither a file nor the name of published weights; did you mean 'resnet50-imagenet'"
    ):
        weights_file("resnet50-imagnet")
