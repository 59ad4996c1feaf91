"""Downloads of source files, cached in the user's cache folder."""

import logging
import sys
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import platformdirs
from tqdm import tqdm

from nmt import __version__
from nmt.errors import DataError

N_RETRIES = 3
TIMEOUT = 30  # seconds without data
BLOCK_BYTES = 1 << 16
MAX_BYTES = 1 << 35  # of a file: 34 GB


def cache_path(url: str) -> Path:
    """The path of the cached file of `url`; files of the same name from different URLs are in
    different folders.
    """
    name = PurePosixPath(unquote(urlsplit(url).path)).name or "download"
    return (
        platformdirs.user_cache_path("nmt")
        / "downloads"
        / sha256(url.encode()).hexdigest()[:8]
        / name
    )


def fetch(url: str, *, is_hashed: bool = False) -> Path:
    """The cached file of `url`, downloaded first if necessary. A partial download never gets the
    name of the file.

    Args:
        is_hashed: the caller compares the file with a known SHA-256, so the connection need not be
            safe.

    Raises:
        DataError: the URL is not a web address, or not a safe one, or the download failed; the
            message says where to put the file.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise DataError(
            f"data.source.url: {url} does not begin with https://; set data.source.path for a "
            "file on disk"
        )
    path = cache_path(url)
    if not path.is_file():
        _download(url, path, is_hashed)
    return path


def _download(url: str, path: Path, is_hashed: bool) -> None:
    import requests
    from pooch.core import create
    from pooch.utils import get_logger

    get_logger().setLevel(logging.ERROR)

    def attempt(url: str, output: str, _manager: Any) -> None:
        try:
            _download_once(url, Path(output), path, is_hashed)
        except requests.HTTPError as error:
            # A retry does not help if the file does not exist.
            if (
                error.response is not None
                and 400 <= error.response.status_code < 500
                and error.response.status_code != 429
            ):
                raise DataError(_advice(url, path, error)) from None
            raise

    cache = create(
        path=path.parent,
        base_url="",
        registry={path.name: None},
        urls={path.name: url},
        retry_if_failed=N_RETRIES,
    )
    try:
        cache.fetch(path.name, downloader=attempt)
    except (OSError, ValueError) as error:  # requests' errors are OSErrors
        raise DataError(_advice(url, path, error)) from None


def _download_once(url: str, output: Path, path: Path, is_hashed: bool) -> None:
    """Write the content of `url` into `output`. path: where the user can put the file, for
    messages.
    """
    import requests

    def check_redirect(response: requests.Response, *_: Any, **__: Any) -> None:
        if response.is_redirect:
            _check_address(urljoin(response.url, response.headers["location"]), is_hashed)

    _check_address(url, is_hashed)
    # Some servers, such as manythings.org, refuse the default user agents of Python libraries.
    headers = {"User-Agent": f"nmt/{__version__}"}
    hooks = {"response": check_redirect}
    with (
        requests.get(url, headers=headers, timeout=TIMEOUT, stream=True, hooks=hooks) as response,
        output.open("wb") as file,
    ):
        response.raise_for_status()
        expected = int(response.headers.get("content-length", 0))
        with tqdm(
            total=expected or None, unit="B", unit_scale=True, disable=not sys.stderr.isatty()
        ) as bar:
            for block in response.iter_content(BLOCK_BYTES):
                file.write(block)
                bar.update(len(block))
                if file.tell() > MAX_BYTES:
                    raise DataError(
                        f"{url}: larger than {MAX_BYTES:,} bytes; download it yourself and "
                        "put it "
                        f"at {path}"
                    )


def _check_address(url: str, is_hashed: bool) -> None:
    """Raises: DataError if an attacker in the network could replace the file without notice."""
    parts = urlsplit(url)
    if (
        parts.scheme != "https"
        and not is_hashed
        and parts.hostname not in ("127.0.0.1", "::1", "localhost")
    ):
        raise DataError(
            f"{url}: http is not safe; use https, or give data.source.sha256 to check the file"
        )


def _advice(url: str, path: Path, error: Exception) -> str:
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        reason = f"the server answers {error.response.status_code} {error.response.reason}"
    elif isinstance(error, requests.Timeout):
        reason = f"no answer for {TIMEOUT} seconds"
    elif isinstance(error, requests.ConnectionError):
        reason = "no connection"
    else:
        reason = " ".join(str(error).split())
    return (
        f"cannot download {url} ({reason}); download it yourself and put it at {path}, or set "
        "data.source.path"
    )
