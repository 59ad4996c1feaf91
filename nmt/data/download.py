"""Downloads of source files, cached in the user's cache folder."""

import sys
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from nmt import __version__
from nmt.errors import DataError, in_one_line

N_RETRIES = 3


def cache_path(url: str) -> Path:
    """The path of the cached file of `url`; each URL has its own folder."""
    from pooch.utils import os_cache

    name = PurePosixPath(unquote(urlsplit(url).path)).name or "download"
    return Path(os_cache("nmt"), "downloads", sha256(url.encode()).hexdigest()[:8], name)


def fetch(url: str, *, is_hashed: bool = False) -> Path:
    """The cached file of `url`, downloaded first if necessary, whole or not at all.

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
        _check_address(url, is_hashed)
        _download(url, path, is_hashed)
    return path


def _download(url: str, path: Path, is_hashed: bool) -> None:
    """Raises: DataError if it fails."""
    import requests
    from pooch.core import create
    from pooch.downloaders import HTTPDownloader
    from pooch.utils import get_logger

    def failure(reason: str) -> DataError:
        return DataError(
            f"cannot download {url} ({reason}); download it yourself and put it at {path}, or set "
            "data.source.path"
        )

    def check(response: requests.Response, *_: Any, **__: Any) -> None:
        if response.is_redirect:
            _check_address(urljoin(response.url, response.headers["location"]), is_hashed)
        elif not response.ok:
            response.close()
            # After 5xx (a fault of the server) and 429 (too many requests), a retry may help.
            if response.status_code < 500 and response.status_code != 429:
                raise failure(f"{response.status_code} {response.reason}")

    get_logger().setLevel("ERROR")
    downloader: Any = HTTPDownloader(  # type: ignore[no-untyped-call]
        progressbar=sys.stderr.isatty(),
        chunk_size=1 << 16,
        timeout=30,  # seconds without data
        # Some servers, such as manythings.org, refuse the default user agents of Python libraries.
        headers={"User-Agent": f"nmt/{__version__}"},
        hooks={"response": check},
    )
    cache = create(
        path=path.parent,
        base_url="",
        registry={path.name: None},
        urls={path.name: url},
        retry_if_failed=N_RETRIES,
    )
    try:
        cache.fetch(path.name, downloader=downloader)
    except requests.ConnectionError:
        raise failure("no connection") from None
    except (OSError, ValueError) as error:  # also all other errors of requests
        raise failure(in_one_line(error)) from None


def _check_address(url: str, is_hashed: bool) -> None:
    """Raises: DataError if an attacker in the network could replace the file without notice."""
    parts = urlsplit(url)
    is_local = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.scheme != "https" and not is_hashed and not is_local:
        raise DataError(
            f"{url}: http is not safe; use https, or give data.source.sha256 to check the file"
        )
