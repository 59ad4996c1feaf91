"""Downloads of source files, cached in the user's cache folder."""

import logging
import sys
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import platformdirs

from nmt import __version__
from nmt.errors import DataError

N_RETRIES = 3
TIMEOUT = 30  # seconds without data


def cache_path(url: str) -> Path:
    """The path of the cached file of `url`; files of the same name from different URLs are in different folders."""
    name = PurePosixPath(unquote(urlsplit(url).path)).name or "download"
    return platformdirs.user_cache_path("nmt") / "downloads" / sha256(url.encode()).hexdigest()[:8] / name


def fetch(url: str) -> Path:
    """The cached file of `url`, downloaded first if necessary. A partial download never gets the name of the file.

    Raises:
        DataError: the URL is not a web address, or the download failed; the message says where to put the file instead.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise DataError(f"data.source.url: {url} does not begin with http:// or https://; set data.source.path for a file on disk")
    path = cache_path(url)
    if not path.is_file():
        _download(url, path)
    return path


def _download(url: str, path: Path) -> None:
    import requests
    from pooch.core import create
    from pooch.downloaders import HTTPDownloader
    from pooch.utils import get_logger

    get_logger().setLevel(logging.ERROR)
    # Some servers, such as manythings.org, refuse the default user agents of Python libraries.
    headers = {"User-Agent": f"nmt/{__version__}"}
    downloader = HTTPDownloader(  # type: ignore[no-untyped-call]
        progressbar=sys.stderr.isatty(), headers=headers, timeout=TIMEOUT
    )

    def attempt(url: str, output: Any, manager: Any) -> None:
        try:
            downloader(url, output, manager)
        except requests.HTTPError as error:
            if error.response is not None:
                error.response.close()
                # A retry does not help if the file does not exist.
                if 400 <= error.response.status_code < 500 and error.response.status_code != 429:
                    raise DataError(_advice(url, path, error)) from None
            raise

    cache = create(path=path.parent, base_url="", registry={path.name: None}, urls={path.name: url}, retry_if_failed=N_RETRIES)
    try:
        cache.fetch(path.name, downloader=attempt)
    except (OSError, ValueError) as error:  # requests' errors are OSErrors
        raise DataError(_advice(url, path, error)) from None


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
    return f"cannot download {url} ({reason}); download it yourself and put it at {path}, or set data.source.path"
