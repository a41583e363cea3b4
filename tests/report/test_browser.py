"""The page in a browser: no error, no request, every image, sorting and enlarging, wide and narrow.

A script is put at the end of a copy of the page. It works the page as a reader does, in a frame as
wide as the window would be (Chromium has no narrower window than 500 pixels), and leaves what it saw in the title.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess

import pytest

from qbdt.report.page import write_report
from tests.report.pages import small_document

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (CHROMIUM or os.environ.get("QBDT_NEED_BROWSER")),  # set in CI, where these tests must not be skipped
        reason="Chromium is not installed: the page is not opened in a browser",
    ),
]

READER = """
<script>
addEventListener("load", async () => {
  const seen = {errors: window.seenErrors, width: innerWidth};
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  const images = [...document.querySelectorAll("figure img")];
  await Promise.all(images.map((image) => image.decode().catch(() => null)));
  seen.images = images.map((image) => image.naturalWidth);
  const column = (n) => [...document.querySelectorAll("tbody tr")].map((row) => row.cells[n].textContent);
  const heads = document.querySelectorAll("thead th button");
  heads[1].click(); seen.rising = column(1);
  heads[1].click(); seen.falling = column(1);
  heads[0].click(); seen.names = column(0);
  document.querySelector(".enlarge").click();
  const large = document.getElementById("large");
  seen.opened = large.open;
  await large.querySelector("img").decode();
  seen.enlarged = large.querySelector("img").getBoundingClientRect().width;
  seen.thumbnail = images[0].getBoundingClientRect().width;
  document.getElementById("close").click(); seen.closed = !large.open;
  document.getElementById("theme").click(); seen.theme = document.documentElement.dataset.theme;
  seen.overflow = document.documentElement.scrollWidth - innerWidth;
  const loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
  seen.requests = loaded.filter((name) => !name.startsWith("data:"));
  parent.postMessage("seen:" + JSON.stringify(seen), "*");
});
</script>
"""
FRAME = """<!DOCTYPE html><body style="margin:0">
<script>addEventListener("message", (event) => { document.title = event.data; });</script>
<iframe src="worked.html" style="border:0;width:WIDTHpx;height:800px"></iframe></body>"""
WATCHER = """<head><script>
window.seenErrors = [];
addEventListener("error", (event) => seenErrors.push(String(event.message)));
addEventListener("unhandledrejection", (event) => seenErrors.push(String(event.reason)));
addEventListener("securitypolicyviolation", (event) => seenErrors.push(event.violatedDirective));
</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    text = write_report(small_document(), folder).read_text(encoding="utf-8")
    copy = folder / "worked.html"
    own = READER.split("<script>")[1].split("</script>")[0].encode()
    allowed = base64.b64encode(hashlib.sha256(own).digest()).decode()
    text = text.replace("script-src ", f"script-src 'sha256-{allowed}' ", 1).replace("<head>", WATCHER, 1)
    copy.write_text(text.replace("</body>", READER + "</body>"), encoding="utf-8")
    return copy


@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
def test_a_reader_can_work_the_page(page, width, tmp_path):
    frame = page.with_name(f"frame-{width}.html")
    frame.write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    command += [f"--user-data-dir={tmp_path}", "--window-size=1400,1000", "--enable-logging=stderr"]
    command += ["--virtual-time-budget=10000", "--dump-dom", frame.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r"<title>seen:(.*?)</title>", done.stdout)
    assert found is not None, done.stderr[-2000:]
    seen = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert seen["errors"] == []
    assert "CONSOLE" not in done.stderr
    assert seen["requests"] == []
    assert len(seen["images"]) == 3
    assert all(width > 0 for width in seen["images"])
    assert seen["rising"] == ["−2.5", "9.5", "10.0"]
    assert seen["falling"] == ["10.0", "9.5", "−2.5"]
    assert seen["names"] == ["a", "b", "c"]
    assert seen["opened"]
    assert seen["closed"]
    assert seen["enlarged"] >= seen["thumbnail"]
    assert seen["theme"] in ("light", "dark")
    assert seen["width"] == width
    assert seen["overflow"] <= 0, "the page is wider than the window"
