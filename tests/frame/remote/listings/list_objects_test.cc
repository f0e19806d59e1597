#include "frame/remote/listings/list_objects.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "frame/remote/listings/listing_text.h"

namespace cframefs::test::list_objects_tests {
namespace {

using codec::ErrorKind;
using frame::ListObjectsQuery;
using frame::ObjectsPage;

codec::Result<ObjectsPage> parse(const std::string& text) {
  return frame::parse_objects_page(std::vector<std::uint8_t>(text.begin(), text.end()));
}

std::string page_of(const std::string& content) {
  return R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">)" +
         content + "</ListBucketResult>";
}

std::string object_of(const std::string& key, const std::string& rest = "<Size>1</Size>") {
  return "<Contents><Key>" + key + "</Key>" + rest + "</Contents>";
}

ErrorKind kind_of(const std::string& text) {
  const auto parsed = parse(text);
  EXPECT_FALSE(parsed);
  return parsed ? ErrorKind::invalid : parsed.error().kind;
}

TEST(ListObjectsTest, AnAnswerOfS3IsRead) {
  const auto page = parse(page_of(R"(
  <Name>bucket</Name><Prefix>data/</Prefix><MaxKeys>1000</MaxKeys><KeyCount>3</KeyCount><Delimiter>/</Delimiter>
  <IsTruncated>true</IsTruncated><NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>
  <Contents>
    <Key>data/a.b2frame</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>
    <ETag>&quot;fba9dede5f27731c9771645a39863328&quot;</ETag><Size>434234</Size><StorageClass>STANDARD</StorageClass>
    <Owner><ID>abc</ID><DisplayName>Jane Doe</DisplayName></Owner>
  </Contents>
  <Contents>
    <Key>data/b.b2frame</Key><LastModified>2009-10-12T17:50:31Z</LastModified><ETag>W/"weak"</ETag><Size>0</Size>
  </Contents>
  <CommonPrefixes><Prefix>data/sub/</Prefix></CommonPrefixes>)"));
  ASSERT_TRUE(page) << codec::describe(page.error());
  ASSERT_EQ(page->objects.size(), 2U);
  EXPECT_EQ(page->objects[0].key, "data/a.b2frame");
  EXPECT_EQ(page->objects[0].state.entity_tag, "\"fba9dede5f27731c9771645a39863328\"");
  EXPECT_EQ(page->objects[0].state.length, 434234U);
  EXPECT_EQ(page->objects[0].state.last_modified, 1255369830);
  EXPECT_EQ(page->objects[1].state.entity_tag, "") << "a weak tag identifies no bytes";
  EXPECT_EQ(page->objects[1].state.last_modified, 1255369831);
  EXPECT_EQ(page->prefixes, std::vector<std::string>{"data/sub/"});
  EXPECT_TRUE(page->is_truncated);
  EXPECT_EQ(page->continuation, "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=");
}

TEST(ListObjectsTest, AnEmptyBucketHasNoObjects) {
  const auto page = parse(page_of("<Name>b</Name><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated>"));
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->objects.empty() && page->prefixes.empty());
  EXPECT_FALSE(page->is_truncated);
}

TEST(ListObjectsTest, KeysAreDecodedOnlyIfTheServerEncodesThem) {
  const std::string content =
      object_of("a%2Bb+c%E2%82%AC%0A") + "<CommonPrefixes><Prefix>p+q%2F/</Prefix></CommonPrefixes>";
  const auto encoded = parse(page_of(content + "<EncodingType>url</EncodingType>"));
  ASSERT_TRUE(encoded);
  EXPECT_EQ(encoded->objects[0].key, "a+b c\xe2\x82\xac\n");
  EXPECT_EQ(encoded->prefixes[0], "p q//");
  const auto plain = parse(page_of(content));
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->objects[0].key, "a%2Bb+c%E2%82%AC%0A");
}

TEST(ListObjectsTest, ATagGetsTheQuotesThatAnswersHave) {
  const auto page = parse(page_of(object_of("k", "<Size>1</Size><ETag>abc</ETag>")));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->objects[0].state.entity_tag, "\"abc\"");
}

TEST(ListObjectsTest, NoTagSmugglesAHeader) {
  const auto page = parse(page_of(object_of("k", "<Size>1</Size><ETag>\"a&#13;&#10;X: y\"</ETag>")));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->objects[0].state.entity_tag, "");
}

TEST(ListObjectsTest, WhatIsNoListIsUnsupported) {
  EXPECT_EQ(kind_of(""), ErrorKind::unsupported);
  EXPECT_EQ(kind_of("plain text"), ErrorKind::unsupported);
  EXPECT_EQ(kind_of("<!DOCTYPE html><html><body>hello</body></html>"), ErrorKind::unsupported);
  EXPECT_EQ(kind_of("<Error><Code>AccessDenied</Code></Error>"), ErrorKind::unsupported);
  EXPECT_EQ(kind_of(std::string(frame::kMostListingBytes + 1, ' ')), ErrorKind::unsupported);
}

TEST(ListObjectsTest, EntitiesAreRefused) {
  EXPECT_EQ(kind_of(R"(<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>
<ListBucketResult><Contents><Key>&b;</Key><Size>1</Size></Contents></ListBucketResult>)"),
            ErrorKind::unsupported);
  EXPECT_EQ(kind_of(page_of(object_of("&undeclared;"))), ErrorKind::corruption);
}

TEST(ListObjectsTest, AContradictoryListIsDamaged) {
  const std::string cut = page_of(object_of("k"));
  for (const std::string& text :
       {cut.substr(0, cut.size() - 5), page_of("<IsTruncated>true</IsTruncated>"), page_of("<Contents></Contents>"),
        page_of(object_of("k", "")), page_of("<Contents><Size>1</Size></Contents>"),
        page_of(object_of("k", "<Size>-1</Size>")), page_of(object_of("k", "<Size>9223372036854775808</Size>")),
        page_of(object_of("k", "<Size>1x</Size>")), page_of(object_of("k", "<Size/>")), page_of("<a><b></a></b>"),
        page_of("<a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a>")})
    EXPECT_EQ(kind_of(text), ErrorKind::corruption) << text;
}

TEST(ListObjectsTest, ThousandsOfNestedElementsAreRefused) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i)
    deep += "<Owner>";
  EXPECT_EQ(kind_of(page_of(deep)), ErrorKind::corruption);
}

TEST(ListObjectsTest, FieldsOfOtherElementsAreNotTaken) {
  const auto page = parse(page_of("<Prefix>x</Prefix><Other><Key>k</Key></Other>" +
                                  object_of("k", "<Size>1</Size><Owner><Size>7</Size></Owner>")));
  ASSERT_TRUE(page);
  ASSERT_EQ(page->objects.size(), 1U);
  EXPECT_EQ(page->objects[0].state.length, 1U);
  EXPECT_TRUE(page->prefixes.empty());
}

TEST(ListObjectsTest, AQueryIsSortedAndEncoded) {
  EXPECT_EQ(frame::text_of(ListObjectsQuery{}), "encoding-type=url&list-type=2&prefix=");
  EXPECT_EQ(frame::text_of(ListObjectsQuery{"a b/\xc3\xbc&", "t+/=", true}),
            "continuation-token=t%2B%2F%3D&delimiter=%2F&encoding-type=url&list-type=2&prefix=a%20b%2F%C3%BC%26");
}

TEST(ListingTextTest, DatesAreCheckedAndFractionsDropped) {
  EXPECT_EQ(frame::seconds_of_iso_date("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(frame::seconds_of_iso_date("2024-02-29T23:59:59.999Z"), 1709251199);
  for (const std::string text :
       {"", "2024-02-29", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00",
        "2024-01-01T00:00:00+02:00", "2024-01-01T00:00:00.1x2Z", "2024-01-01 00:00:00Z"})
    EXPECT_FALSE(frame::seconds_of_iso_date(text)) << text;
}

TEST(ListingTextTest, NamesThatATreeCannotHoldAreKnown) {
  for (const std::string& name : {std::string("a"), std::string("..."), std::string(255, 'x'), std::string("\xff")})
    EXPECT_TRUE(frame::is_entry_name(name)) << name;
  for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string("a/b"),
                                  std::string("a\0b", 3), std::string(256, 'x')})
    EXPECT_FALSE(frame::is_entry_name(name)) << name;
}

TEST(ListingTextTest, APercentSignWithoutDigitsStays) {
  EXPECT_EQ(frame::decoded_name("100%"), "100%");
  EXPECT_EQ(frame::decoded_name("%4"), "%4");
  EXPECT_EQ(frame::decoded_name("%zz%41%2"), "%zzA%2");
  EXPECT_EQ(frame::decoded_name("%2541"), "%41") << "decoded once";
}

}  // namespace
}  // namespace cframefs::test::list_objects_tests
