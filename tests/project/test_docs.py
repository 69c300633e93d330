"""docs/: every page is in the site's menu, and every relative link's page and heading exist."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import docs_pages  # noqa: E402

DOCS = ROOT / "docs"
FENCE = re.compile(r"^( *)(```+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def pages():
    top = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    return [*top, *sorted(DOCS.rglob("*.md"))]


def menu():
    """The pages in mkdocs.yml's menu, in order."""
    _, _, nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")
    return re.findall(r"(?m)(?:: |- )([\w./-]+\.md)$", nav)


def prose(path):
    """A page's text without code blocks."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(text):
    """The anchors of the headings, as GitHub and the site generate them."""
    found = []
    for heading in HEADING.findall(text):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        words = re.sub(r"[^\w\- ]", "", heading.lower())
        found.append(words.strip().replace(" ", "-"))
    return found


def broken_links(path, text):
    """Links of a page whose targets do not exist."""
    broken = []
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        page = path.parent / name if name else path
        named = anchors(prose(page)) if page.exists() and page.suffix == ".md" else [anchor]
        if not page.exists() or (anchor and anchor not in named):
            broken.append(target)
    return broken


def test_the_menu_has_every_page_once_and_no_other():
    listed = menu()
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert sorted(listed) == sorted(there | set(docs_pages.GENERATED))


def test_every_link_leads_to_a_page_and_a_heading():
    broken = {str(page): broken_links(page, prose(page)) for page in pages()}
    assert not {page: links for page, links in broken.items() if links}


def test_a_link_that_leads_nowhere_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A `b` title's end\n\n```sh\n# no heading\n[x](nowhere.md)\n```\n")
    (tmp_path / "other.md").write_text("[back](page.md#a-b-titles-end)\n")
    assert broken_links(page, prose(page)) == []
    assert broken_links(page, "[a](other.md) [b](page.md#a-b-titles-end) [c](https://x.y)") == []
    assert broken_links(page, "[a](gone.md) [b](page.md#no-heading)") == [
        "gone.md",
        "page.md#no-heading",
    ]


def test_a_list_follows_an_empty_line():
    """Without an empty line, the site shows a list as part of the preceding paragraph."""
    glued = re.compile(r"(?m)^(?![#*|> \d-]).+\n(?=\* )")
    assert not {str(page): found for page in pages() if (found := glued.findall(prose(page)))}


def test_the_site_fetches_no_external_files():
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "\n  font: false\n" in config
    assert not re.search(r"https?://", config)


def test_links_out_of_docs_become_paths():
    text = (
        "[a](../tools/lint.py) [lint.py](../tools/lint.py) [b](../ARCHITECTURE.md#x) [c](data.md)"
    )
    assert docs_pages.without_outer_links(text, "cluster.md") == (
        "a (`tools/lint.py`) `tools/lint.py` [b](architecture.md#x) [c](data.md)"
    )


def test_reference_pages_have_the_names_that_their_packages_list():
    page = docs_pages.api_page("hearth.torch")
    assert "::: hearth.torch.torch_cluster.TorchCluster\n" in page
    assert "(hearth.cluster.md#hearth.cluster.errors.NodeError)" in page
    assert "::: hearth.cluster.errors.NodeError\n" in docs_pages.api_page("hearth.cluster")
    assert "::: hearth.data.loader.Loader\n" in docs_pages.api_page("hearth.cluster")
    assert "::: hearth.data.image.image\n" in docs_pages.api_page("hearth.data")
    for package in docs_pages.PACKAGES:
        assert docs_pages.api_page(package).count(":::") >= 1


# Other programs' messages that troubleshooting.md explains, too.
FOREIGN = ("killed by YARN", "Permission denied: user", "access=WRITE", "Duplicate GPU detected")
VARIABLE = re.compile(r"\.\.\.|\b[A-Z]\b|\b\d\S*(?: null)?|'\w+'|SIGKILL|\bhearth\b|[()]")


def quoted_messages(page):
    """The constant fragments of the messages in the first column of a page's tables."""
    for cell in re.findall(r"(?m)^\| (`[^|]*) \|", page):
        for message in re.findall(r"`([^`]+)`", cell):
            fragments = (one.strip(" ,:;") for one in VARIABLE.split(message))
            yield from (one for one in fragments if len(one) > 8)


def missing_messages(page, sources):
    known = [one for one in quoted_messages(page) if not one.startswith(FOREIGN)]
    return [fragment for fragment in known if fragment not in sources]


def test_troubleshooting_explains_messages_that_exist():
    _, _, page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8").partition("\n## ")
    files = [*(ROOT / "python").rglob("*.py"), *(ROOT / "hearth").rglob("*.cc")]
    sources = "".join(file.read_text(encoding="utf-8") for file in files)
    sources = re.sub(r'"\s*\n?\s*f?"', "", sources)  # joins a message's adjacent literals
    assert len([*quoted_messages(page)]) > 30
    assert missing_messages(page, sources) == []
    changed = page.replace("YARN's location is unknown", "nothing says where YARN is")
    assert missing_messages(changed, sources) == ["--master yarn: nothing says where YARN is"]
