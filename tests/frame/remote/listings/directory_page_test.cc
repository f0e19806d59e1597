#include "frame/remote/listings/directory_page.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "frame/remote/listings/html_links.h"

namespace cframefs::test::directory_page_tests {
namespace {

using codec::ErrorKind;
using frame::DirectoryPage;

using Entries = std::vector<std::pair<std::string, bool>>;  // name, is a directory

const std::string kUrl = "http://host:8080/data/my%20files/";

codec::Result<DirectoryPage> parse(const std::string& text, const std::string& url = kUrl) {
  return frame::parse_directory_page(std::vector<std::uint8_t>(text.begin(), text.end()), url);
}

Entries entries_of(const std::string& text, const std::string& url = kUrl) {
  const auto page = parse(text, url);
  EXPECT_TRUE(page) << codec::describe(page.error());
  Entries entries;
  if (page) {
    for (const DirectoryPage::Entry& entry : page->entries)
      entries.emplace_back(entry.name, entry.is_directory);
  }
  return entries;
}

/// Returns the entries of a page that is known to be a listing and has these links.
Entries entries_of_links(const std::vector<std::string>& targets) {
  std::string page = "<title>Index of /</title>";
  for (const std::string& target : targets)
    page += "<a href=\"" + target + "\">x</a>\n";
  return entries_of(page);
}

TEST(DirectoryPageTest, APageOfNginxIsRead) {
  EXPECT_EQ(entries_of("<html>\r\n<head><title>Index of /data/my files/</title></head>\r\n<body>\r\n"
                       "<h1>Index of /data/my files/</h1><hr><pre><a href=\"../\">../</a>\r\n"
                       "<a href=\"sub%20dir/\">sub dir/</a>            03-Jan-2024 10:00                   -\r\n"
                       "<a href=\"a%26b.b2frame\">a&amp;b.b2frame</a>  03-Jan-2024 10:00               12345\r\n"
                       "<a href=\"%C3%BC%3A%23%3F.b2nd\">\xc3\xbc:#?.b2nd</a>    03-Jan-2024 10:00     1\r\n"
                       "</pre><hr></body>\r\n</html>\r\n"),
            (Entries{{"sub dir", true}, {"a&b.b2frame", false}, {"\xc3\xbc:#?.b2nd", false}}));
}

TEST(DirectoryPageTest, APageOfApacheIsRead) {
  EXPECT_EQ(entries_of(R"(<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">
<html><head><title>Index of /data/my files</title></head><body><h1>Index of /data/my files</h1>
<table><tr><th valign="top"><img src="/icons/blank.gif" alt="[ICO]"></th><th><a href="?C=N;O=D">Name</a></th>
<th><a href="?C=M;O=A">Last modified</a></th></tr>
<tr><td><img src="/icons/back.gif" alt="[PARENTDIR]"></td><td><a href="/data/">Parent Directory</a></td></tr>
<tr><td><a href="it&#39;s%20&lt;b&gt;&amp;c.b2frame">it's</a></td><td align="right">2024-01-03 10:00</td><td>1.2M</td></tr>
<tr><td><a href="sub/">sub/</a></td></tr></table>
<address>Apache/2.4.57 (Debian) Server at <a href="mailto:webmaster@host">host</a> Port 80</address></body></html>)"),
            (Entries{{"it's <b>&c.b2frame", false}, {"sub", true}}));
}

TEST(DirectoryPageTest, PagesOfPythonLighttpdAndCaddyAreRead) {
  EXPECT_EQ(entries_of("<!DOCTYPE HTML>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<title>Directory listing for /data/my files/</title>\n</head>\n<body>\n<ul>\n"
                       "<li><a href=\"x.b2frame\">x.b2frame</a></li>\n<li><a href=\"d/\">d/</a></li>\n"
                       "<li><a href=\"link%40\">link@</a></li>\n</ul>\n</body>\n</html>\n"),
            (Entries{{"x.b2frame", false}, {"d", true}, {"link@", false}}));
  EXPECT_EQ(
      entries_of("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.1//EN\">\n"
                 "<head><title>Index of /data/</title><style type=\"text/css\">a[href='no'] {}</style></head>"
                 "<tr class=\"d\"><td class=\"n\"><a href=\"../\">..</a>/</td></tr>\n"
                 "<tr class=\"d\"><td class=\"n\"><a href=\"d/\">d</a>/</td></tr>"),
      (Entries{{"d", true}}));
  EXPECT_EQ(entries_of("<!DOCTYPE html><html><body><a class=\"up\" href=\"..\">Up</a>"
                       "<a href=\"./x%20y.b2nd\"><span class=name>x y</span></a><a href='./d/'>d</a></body></html>"),
            (Entries{{"x y.b2nd", false}, {"d", true}}));
}

TEST(DirectoryPageTest, JsonOfNginxTellsStates) {
  const auto page = parse(R"([
{ "name":"sub", "type":"directory", "mtime":"Wed, 21 Oct 2015 07:28:00 GMT" },
{ "name":"a%20b.b2frame", "type":"file", "mtime":"Wed, 21 Oct 2015 07:28:00 GMT", "size":12345678901 },
{ "name":"undated", "type":"file", "mtime":"yesterday", "size":1 },
{ "name":"pipe", "type":"other", "mtime":"Wed, 21 Oct 2015 07:28:00 GMT" }
])");
  ASSERT_TRUE(page) << codec::describe(page.error());
  ASSERT_EQ(page->entries.size(), 3U);
  EXPECT_TRUE(page->entries[0].is_directory);
  EXPECT_EQ(page->entries[1].name, "a%20b.b2frame") << "JSON is not percent-encoded";
  ASSERT_TRUE(page->entries[1].state);
  EXPECT_EQ(page->entries[1].state->length, 12345678901U);
  EXPECT_EQ(page->entries[1].state->last_modified, 1445412480);
  EXPECT_FALSE(page->entries[2].state);
  EXPECT_EQ(page->left_out, 1U);
}

TEST(DirectoryPageTest, JsonOfCaddyIsRead) {
  EXPECT_EQ(entries_of(R"([{"name":"d/","size":4096,"url":"./d/","mod_time":"2024-01-01T00:00:00Z","is_dir":true},
                          {"name":"x.b2nd","size":5,"is_dir":false,"more":{"name":"deep","list":[1,{"name":"y"}]}}])"),
            (Entries{{"d", true}, {"x.b2nd", false}}));
  EXPECT_EQ(entries_of("[]"), Entries());
}

TEST(DirectoryPageTest, JsonThatIsNoListingIsUnsupported) {
  for (const std::string text :
       {"[1]", "[[]]", R"(["a"])", R"([{"name":"a"})", R"([{"name":"a"}] x)", "[", "[{\"name\":\"\xff\"}]"}) {
    const auto page = parse(text);
    ASSERT_FALSE(page) << text;
    EXPECT_EQ(page.error().kind, ErrorKind::unsupported);
  }
  const auto deep = parse("[{\"a\":" + std::string(1'000'000, '['));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().kind, ErrorKind::unsupported);
}

TEST(DirectoryPageTest, LinksThatLeadElsewhereAreIgnored) {
  EXPECT_EQ(entries_of_links({"",
                              "#top",
                              "?C=N",
                              "x?y=1",
                              "..",
                              "../",
                              "../other",
                              "/",
                              "/data/",
                              "/data/x",
                              "/x",
                              "//evil/data/my%20files/x",
                              "http://evil/data/my%20files/x",
                              "https://host:8080/data/my%20files/x",
                              "http://host:80801/data/my%20files/x",
                              "javascript:alert(1)",
                              "mailto:a@b",
                              "a/b",
                              "a/b/",
                              "a//",
                              "./",
                              ".",
                              "./..",
                              "%2e%2e",
                              "%2e%2e/",
                              ".//x",
                              "/data/my%20files",
                              "/data/my%20files/",
                              "a/../b",
                              "/data/my%20files/../x"}),
            Entries());
}

TEST(DirectoryPageTest, LinksOfAllSpellingsOfTheOwnAddressCount) {
  EXPECT_EQ(entries_of_links({"a", "./b", "././c", "/data/my%20files/d", "/data/my files/e/", "/%64ata/my%20files/f",
                              "//host:8080/data/my%20files/g", "http://host:8080/data/my%20files/h", " i\n", "j#part"}),
            (Entries{{"a", false},
                     {"b", false},
                     {"c", false},
                     {"d", false},
                     {"e", true},
                     {"f", false},
                     {"g", false},
                     {"h", false},
                     {"i", false},
                     {"j", false}}));
}

TEST(DirectoryPageTest, NamesThatATreeCannotHoldAreLeftOut) {
  const std::string longest(255, 'n');
  const auto page = parse("<a href='a%2Fb'></a><a href='a%00'></a><a href='" + longest + "'></a><a href='" + longest +
                          "n'></a><a href='/data/my%20files//'></a>");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->entries.size(), 1U);
  EXPECT_EQ(page->entries[0].name, longest);
  EXPECT_EQ(page->left_out, 4U);
}

TEST(DirectoryPageTest, AnEmptyDirectoryIsToldFromAnotherPage) {
  EXPECT_EQ(entries_of("<html><head><title>Index of /</title></head></html>"), Entries());
  EXPECT_EQ(entries_of("<html><a href=\"../\">../</a></html>"), Entries());
  EXPECT_EQ(entries_of("<html><a href=\"/data/\">up</a></html>"), Entries());
  for (const std::string text : {"<html><title>Welcome!</title><a href=\"https://elsewhere/\">more</a></html>",
                                 "<html>", "hello", "", " ", R"({"name":"a"})", "\x89PNG"}) {
    const auto page = parse(text);
    ASSERT_FALSE(page) << text;
    EXPECT_EQ(page.error().kind, ErrorKind::unsupported);
  }
}

TEST(DirectoryPageTest, TheRootOfAServerHasLinks) {
  EXPECT_EQ(entries_of("<a href=\"/x\">x</a><a href=\"y/\">y</a><a href=\"/z/\">z</a>", "http://host/"),
            (Entries{{"x", false}, {"y", true}, {"z", true}}));
}

TEST(DirectoryPageTest, AHugePageIsRefused) {
  const auto page = parse("<a href=x>" + std::string(std::size_t{8} << 20, ' '));
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().kind, ErrorKind::unsupported);
}

TEST(HtmlLinksTest, OnlyLinksOfAnchorsCount) {
  EXPECT_EQ(
      frame::links_of_html("<!-- <a href=no> --><script>'<a href=no>'</script><STYLE><a href=no></style>"
                           "<area href=no><link href=no><abbr href=no><a name=no><A\tdata-href=no HREF = 'yes' href=no>"
                           "</a href=no><a/href=yes2/><a href=\"y>es\"><a href=>< a href=no>")
          .targets,
      (std::vector<std::string>{"yes", "yes2/", "y>es", ""}));
}

TEST(HtmlLinksTest, WhatEndsInTheMiddleEndsTheScan) {
  for (const std::string text : {"<", "<a", "<a ", "<a href", "<a href=", "<a href=\"x", "<!--", "<!-- <a href=x>",
                                 "<script>", "<script><a href=x>", "<a href=\"x><a href=y>", "&", "<title>"})
    EXPECT_TRUE(frame::links_of_html(text).targets.empty()) << text;
}

TEST(HtmlLinksTest, HostileTextTakesLinearTime) {
  for (const std::string piece : {"<", "<!--", "<a ", "<a href=\"", "<script>", "</", "<a href=&", "<title>"}) {
    std::string text;
    while (text.size() < (std::size_t{4} << 20))
      text += piece;
    frame::links_of_html(text);
  }
}

TEST(HtmlLinksTest, CharacterReferencesAreDecodedOnce) {
  EXPECT_EQ(frame::without_references("&amp;lt; &lt;&gt;&quot;&apos; &#39;&#x27;&#X20AC;&#128512;"),
            "&lt; <>\"' ''\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(frame::without_references("& &; &amp &#; &#x; &#-1; &#55296; &#1114112; &nosuch; &#99999999999;"),
            "& &; &amp &#; &#x; &#-1; &#55296; &#1114112; &nosuch; &#99999999999;");
}

}  // namespace
}  // namespace cframefs::test::directory_page_tests
