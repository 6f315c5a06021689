from xml.etree import ElementTree

import pytest

from setsup.datasets.formats.xml_file import read_children, read_elements
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files import scenenn

HEALTHY = scenenn.xml(0)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_attributes_as_elementtree_reads_them(encoding):
    text = HEALTHY.decode().replace("UTF-8", encoding)
    expected = [dict(found.attrib) for found in ElementTree.fromstring(text.encode(encoding)).findall("label")]
    assert len(expected) == 7
    assert [found for _, found in read_children(text.encode(encoding), "005.xml", "label")] == expected


def test_only_what_stands_right_below_the_root():
    content = (
        b"<label id='0'>\n<group><label id='1'/></group>\n<label id='2'><label id='3'/></label><other id='4'/></label>"
    )
    assert read_children(content, "005.xml", "label") == [(3, {"id": "2"})]


def test_elements_at_any_depth():
    content = b"<a>\n<b><label id='1'/></b>\n<label id='2'><label id='3'/></label><other id='4'/></a>"
    assert read_elements(content, "005.xml", "label") == [(2, {"id": "1"}), (3, {"id": "2"}), (3, {"id": "3"})]


@pytest.mark.parametrize("encoding", ["gb2312", "GB_2312", "gbk", "GB18030"])
def test_encodings_of_several_bytes(encoding):
    codec = "gb2312" if encoding == "GB_2312" else encoding
    text = f"<?xml version='1.0' encoding='{encoding}' ?><a><label text='五菱荣光'/></a>"
    for content in (text.encode(codec), b"\xef\xbb\xbf" + text.encode()):
        assert read_elements(content, "005.xml", "label") == [(1, {"text": "五菱荣光"})]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "no element found"),
        (b"<a><label id='1'></a>", "mismatched tag"),
        (b"<a/>more", "junk after document element"),
        (b"\x89PNG", "not well-formed"),
        (b"<a><label id='1' id='2'/></a>", "duplicate attribute"),
        (b'<?xml version="1.0" encoding="no-such"?><a/>', "no-such|unknown encoding"),
        (b'<?xml version="1.0" encoding="utf-7"?><a/>', "could not be parsed as XML"),
        (b'<?xml version="1.0" encoding="gb2312"?><a b="\xff\xff"/>', "can't decode byte 0xff"),
        (b'<?xml version="1.0" encoding="big5"?><a b="\xa4\xa4"/>', "multi-byte encodings are not supported"),
        (b"<a>" + b"<b>" * 40 + b"</b>" * 40 + b"</a>", "nested deeper than the limit of 32 levels"),
        (
            b"<a><label " + b" ".join(b"a%d=''" % i for i in range(1001)) + b"/></a>",
            "more attributes than the limit of 1,000",
        ),
        (b"<a>" + b"<label/>" * 100_001 + b"</a>", "more <label> elements than the limit of 100,000"),
    ],
)
def test_refused(content, sentence):
    with pytest.raises(DataError, match=rf"005\.xml.*({sentence})") as found:
        read_children(content, "005.xml", "label")
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>',
        '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE a SYSTEM "https://example.org/a.dtd">',
        "<!DOCTYPE a>",
    ],
)
def test_entities_are_refused(doctype):
    with pytest.raises(
        DataError, match=r"005\.xml contains a DOCTYPE, which setsup does not accept because it can define entities"
    ):
        read_children(f'{doctype}<a><label text="&c;"/></a>'.encode(), "005.xml", "label")


def test_undeclared_entities_are_refused():
    with pytest.raises(DataError, match="undefined entity"):
        read_children(b'<a><label text="&c;"/></a>', "005.xml", "label")


def test_damage():
    assert survives(HEALTHY, lambda content: read_children(content, "005.xml", "label"), rounds=150) > 50
