"""The part of the web that Pulumi's Kubernetes plugin downloads from, on this machine.

The program names charts and CRDs by their public addresses, here as on AWS. The plugin is started with ``HTTPS_PROXY`` and with
a certificate authority of this process's own, and so finds the recorded ones there. Any other address is refused.
"""

import datetime
import io
import ssl
import tempfile
import threading
from contextlib import AbstractContextManager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sandbox.charts.render import charts

# Where each chart's repository is (components/versions.py names them to the program).
_REPOSITORIES: Final = {
    "kuberay-operator": ("ray-project.github.io", "/kuberay-helm"),
    "nvidia-device-plugin": ("nvidia.github.io", "/k8s-device-plugin"),
    "aws-efa-k8s-device-plugin": ("aws.github.io", "/eks-charts"),
}
_RAW: Final = "raw.githubusercontent.com"
_CRDS: Final = "/ray-project/kuberay/v{version}/helm-chart/kuberay-operator/crds/{name}"


class ChartWeb(AbstractContextManager["ChartWeb"]):
    """Serves recorded charts and KubeRay's CRDs as long as it is entered.

    Args:
        ray_crds: The folder of KubeRay's CRDs.

    Attributes:
        environment: What a process needs to download from here.
    """

    def __init__(self, ray_crds: Path) -> None:
        self._pages = _pages(ray_crds)
        self._folder = tempfile.TemporaryDirectory(prefix="ray-llm-eks-web-")
        self.environment: dict[str, str] = {}

    def __enter__(self) -> Self:
        folder = Path(self._folder.name)
        hosts = sorted({host for host, _ in self._pages})
        _make_certificates(folder, hosts)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._pages, context))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.environment = {
            "HTTPS_PROXY": f"http://127.0.0.1:{self._server.server_address[1]}",
            "NO_PROXY": "127.0.0.1,localhost",
            "SSL_CERT_FILE": str(folder / "authority.pem"),
        }
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._folder.cleanup()


def _pages(ray_crds: Path) -> dict[tuple[str, str], bytes]:
    """(host, path) -> content."""
    found: dict[tuple[str, str], bytes] = {}
    for name, chart in charts().items():
        host, folder = _REPOSITORIES[name]
        archive = f"{folder}/{name}-{chart.version}.tgz"
        entry = {**chart.about, "urls": [f"https://{host}{archive}"], "created": "2026-01-01T00:00:00Z"}
        index = {"apiVersion": "v1", "entries": {name: [entry]}, "generated": "2026-01-01T00:00:00Z"}
        found[host, f"{folder}/index.yaml"] = yaml.safe_dump(index).encode()
        found[host, archive] = chart.archive(ray_crds if name == "kuberay-operator" else None)
    version = charts()["kuberay-operator"].version
    for one in ray_crds.glob("*.yaml"):
        found[_RAW, _CRDS.format(version=version, name=one.name)] = one.read_bytes()
    return found


def _handler(pages: dict[tuple[str, str], bytes], context: ssl.SSLContext) -> type[BaseHTTPRequestHandler]:
    hosts = {host for host, _ in pages}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        host = ""

        def do_CONNECT(self) -> None:
            """Opens a tunnel and answers at its other end."""
            host = self.path.rpartition(":")[0]
            if host not in hosts:
                self.send_error(502, f"the sandbox has no way to {host}: it serves {', '.join(sorted(hosts))}")
                return
            self.send_response(200, "Connection established")
            self.end_headers()
            self.host = host
            # The client may hang up at any time.
            with suppress(OSError):
                self.connection = context.wrap_socket(self.connection, server_side=True)
                self.rfile = self.connection.makefile("rb")
                self.wfile = _Unbuffered(self.connection)
                self.close_connection = False

        def do_GET(self) -> None:
            """Answers with a page."""
            content = pages.get((self.host, self.path.partition("?")[0]))
            if content is None:
                self.send_error(404, f"the sandbox has not recorded https://{self.host}{self.path}")
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    return Handler


class _Unbuffered(io.BufferedIOBase):
    def __init__(self, connection: ssl.SSLSocket) -> None:
        self._connection = connection

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        self._connection.sendall(content)
        return len(content)


def _make_certificates(folder: Path, hosts: list[str]) -> None:
    """``authority.pem``, which a client trusts, and ``server.pem`` for the hosts; both live for a day."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ray-llm-eks sandbox")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    now = datetime.datetime.now(datetime.UTC)

    def signed(name: x509.Name, public: ec.EllipticCurvePublicKey, extension: x509.ExtensionType) -> x509.Certificate:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(extension, critical=False)
            .sign(authority_key, hashes.SHA256())
        )

    authority = signed(issuer, authority_key.public_key(), x509.BasicConstraints(ca=True, path_length=0))
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    server = signed(subject, key.public_key(), names)
    pem = serialization.Encoding.PEM
    (folder / "authority.pem").write_bytes(authority.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "server.pem").write_bytes(private + server.public_bytes(pem))
