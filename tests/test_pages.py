"""The runner of pages notices what a page gets wrong."""

import pytest

from tests.pages import blocks, run_page

PAGE = """
<!-- run
import math
-->
```python
x = math.pi
```

```pycon
>>> round(x, 2)
3.14
```

```yaml title="a/b.yaml"
key: 1
```

```console
$ cat a/b.yaml
key: 1
$ printf 'one\\ntwo\\nthree\\n'
one
...
three
```

<!-- roughly: as an example -->
```console
$ echo 'σ = 1.05 ± 0.19'
σ = 1.00 ± 0.20
```

<!-- not run: as an example -->
```console
$ false
```
"""


def test_a_page_that_does_as_it_says(tmp_path):
    (tmp_path / "page.md").write_text(PAGE)
    assert run_page(tmp_path / "page.md", tmp_path) == 6
    assert [block.line for block in blocks(PAGE)] == [2, 5, 9, 14, 18, 27, 33]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("3.14", "3.15"),
        ("x = math.pi", "x = math.tau"),
        ("$ cat a/b.yaml", "$ cat b.yaml"),
        ("three\n```", "four\n```"),
        ("± 0.19'", "± 0.29'"),
        ("σ = 1.05", "τ = 1.05"),
        ("<!-- not run: as an example -->\n", ""),
    ],
)
def test_a_page_that_does_not(tmp_path, old, new):
    assert old in PAGE
    (tmp_path / "page.md").write_text(PAGE.replace(old, new))
    with pytest.raises(AssertionError):
        run_page(tmp_path / "page.md", tmp_path)
