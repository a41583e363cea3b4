"""Pictures of pages: a click shows one alone, and a narrow screen gets the narrow one where there is one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PICTURE = re.compile(r'<img [^>]*?src="(?P<path>[^"]*?images/(?P<name>[\w-]+))\.(?P<kind>svg|png)"(?P<more>[^>]*)>')


def on_page_content(content: str, config: Any, **_: Any) -> str:
    """Wrap every picture of the page."""
    narrow = {path.stem.removesuffix("-narrow") for path in Path(config["docs_dir"], "images").glob("*-narrow.svg")}

    def wrapped(match: re.Match[str]) -> str:
        source = f'<source media="(max-width: 560px)" srcset="{match["path"]}-narrow.svg">'
        drawn = f"<picture>{source if match['name'] in narrow else ''}{match[0]}</picture>"
        return f'<a class="picture" href="{match["path"]}.{match["kind"]}">{drawn}</a>'

    return PICTURE.sub(wrapped, content)
