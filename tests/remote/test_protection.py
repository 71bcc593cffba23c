"""Who may use a server, and what it asks of them."""

from __future__ import annotations

import pytest

import openmxu
from openmxu.remote import versions
from openmxu.remote.address import Address
from openmxu.remote.client import remote_configuration
from openmxu.remote.errors import AddressError, RemoteError, SettingError
from openmxu.remote.server import Server
from openmxu.remote.settings import VARIABLES, Access, Protection
from openmxu.sim.interpreter import Interpreter
from tests.remote.served import CERTIFICATES, CONFIG, TLS, TOKEN, serving

AUTHORITY = CERTIFICATES / "authority.pem"
CLIENT = {"certificate": CERTIFICATES / "client.pem", "key": CERTIFICATES / "client.key"}


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="module")
def address():
    """A server with encryption and token."""
    with serving(token=TOKEN, **TLS) as server:
        yield str(server.address)


@pytest.mark.parametrize("token", [None, "another", f"{TOKEN}x"])
@pytest.mark.parametrize("use", [openmxu.open_device, remote_configuration])
def test_wrong_token(address, use, token):
    with pytest.raises(RemoteError, match="token is missing or wrong; OPENMXU_REMOTE_TOKEN has the token"):
        use(address, authority=AUTHORITY, token=token)


def test_access_by_environment(address, monkeypatch):
    monkeypatch.setenv("OPENMXU_REMOTE_TOKEN", TOKEN)
    monkeypatch.setenv("OPENMXU_REMOTE_CA", str(AUTHORITY))
    assert remote_configuration(address) == CONFIG


def test_client_without_encryption(address):
    with pytest.raises(RemoteError, match=f"no openmxu server answers at {address}, without encryption: "):
        openmxu.open_device(address, token=TOKEN)


def test_server_without_encryption():
    with serving() as server, pytest.raises(RemoteError, match=r"no openmxu server answers at .*, with encryption: "):
        openmxu.open_device(str(server.address), authority=AUTHORITY)


def test_certificate_of_another_authority(address):
    with pytest.raises(RemoteError, match=r"no openmxu server answers at .*, with encryption: "):
        openmxu.open_device(address, authority=CERTIFICATES / "client.pem", token=TOKEN)


def test_certificates_of_clients():
    with serving(client_authority=AUTHORITY, **TLS) as server:
        address = str(server.address)
        assert remote_configuration(address, authority=AUTHORITY, **CLIENT) == CONFIG
        with pytest.raises(RemoteError, match="no openmxu server answers"):
            remote_configuration(address, authority=AUTHORITY)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            {versions.VERSION_KEY: "0.0.1", versions.INTERFACE_KEY: "1"},
            r"the server has openmxu .* and the client openmxu 0\.0\.1: install the same openmxu on both",
        ),
        (
            {versions.VERSION_KEY: openmxu.__version__, versions.INTERFACE_KEY: "7"},
            "the server has version 1 of the instruction set and the client version 7 of the instruction set: install",
        ),
        ({}, "the client version unknown of the instruction set"),
    ],
)
def test_other_version(own, message, monkeypatch):
    with serving() as server:
        monkeypatch.setattr("openmxu.remote.connection.own_versions", lambda: own)
        for use in (openmxu.open_device, remote_configuration):
            with pytest.raises(RemoteError, match=message):
                use(str(server.address))


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "board.example", "[::]"])
def test_other_machines_need_encryption_and_token(host):
    address = Address.parse(f"grpc://{host}:8790")
    for protection, lacks in (
        (Protection(), r"encryption \(a certificate and its key\) and a token; 127"),
        (Protection(token=TOKEN), r"encryption \(a certificate and its key\); 127"),
        (Protection(**TLS), "needs a token; 127"),
    ):
        with pytest.raises(SettingError, match=lacks):
            protection.check(address)
    for protection in (
        *(Protection(token=TOKEN, **TLS), Protection(client_authority=AUTHORITY, **TLS), Protection(insecure=True)),
    ):
        protection.check(address)


def test_clients_encrypt_to_other_machines():
    here, elsewhere = Address("127.0.0.1", 1), Address("192.0.2.1", 1)
    assert not Access().is_encrypted(here)
    assert Access(authority=AUTHORITY).is_encrypted(here)
    assert Access().is_encrypted(elsewhere)
    assert not Access(insecure=True).is_encrypted(elsewhere)


@pytest.mark.parametrize("kind", [Access, Protection])
def test_wrong_settings(kind, tmp_path):
    with pytest.raises(SettingError, match="a certificate and its key belong together: the key is missing"):
        kind(certificate="x.pem")
    with pytest.raises(SettingError, match="a certificate and its key belong together: the certificate is missing"):
        kind(key="x.key")
    for token in ("", "two words", "ü", "x" * 1001):
        with pytest.raises(SettingError, match="a token has 1 to 1000 printable ASCII characters"):
            kind(token=token)
    path = tmp_path / "x.pem"
    settings = kind(certificate=path, key=CERTIFICATES / "server.key")
    with pytest.raises(SettingError, match=r"cannot read .*x\.pem: no such file"):
        settings.files()
    path.write_text("no certificate")
    with pytest.raises(SettingError, match=r"x\.pem is no PEM file"):
        settings.files()


def test_certificates_of_clients_need_encryption():
    with pytest.raises(SettingError, match="certificates of clients need encryption"):
        Protection(client_authority=AUTHORITY)


def test_unknown_option():
    with pytest.raises(TypeError, match="a device at an address has no option 'ca'"):
        openmxu.open_device("grpc://127.0.0.1:1", ca="x")


@pytest.mark.parametrize(
    "text",
    ["grpc://", "grpc://host", "grpc://host:port", "grpc://host:65536", "grpc://:1", "grpc://a:1/b", "grpc://::1:2"],
)
def test_wrong_addresses(text):
    with pytest.raises(AddressError, match=r"an address must be grpc://HOST:PORT, as grpc://127\.0\.0\.1:8790, not"):
        openmxu.open_device(text)


def test_addresses():
    assert Address.parse("grpc://[::1]:8790") == Address("::1", 8790)
    assert str(Address("::1", 8790)) == "grpc://[::1]:8790"
    assert Address.parse("board.example:1", scheme="").host == "board.example"
    assert [host for host in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "board") if Address(host, 1).is_loopback] == [
        *("localhost", "127.0.0.2", "::1")
    ]


def test_address_in_use():
    with serving() as server, pytest.raises(SettingError, match=r"cannot listen at 127\.0\.0\.1:"):
        Server("interpreter", lambda: Interpreter(CONFIG), server.address, Protection())
