// SPDX-License-Identifier: Apache-2.0
// fattr4: the table of attributes, typed decoding and encoding, unknown and malformed values.
#include <gtest/gtest.h>

#include "nfs4/print.hpp"
#include "tests/nfs4/all_types.hpp"

namespace nfsrdma::nfs4::test {
namespace {

Buffer words(std::initializer_list<uint32_t> list) {
  Buffer out(list.size() * 4);
  size_t at = 0;
  for (uint32_t word : list) {
    xdr::store_u32(out.data() + at, word);
    at += 4;
  }
  return out;
}

TEST(Attributes, StatSetHasTheWellKnownMask) {
  EXPECT_EQ(stat_attributes.count, 2u);
  EXPECT_EQ(stat_attributes.words[0], 0x0010011Au);
  EXPECT_EQ(stat_attributes.words[1], 0x00B0A23Au);
}

TEST(Attributes, DecodeInAscendingOrder) {
  const Buffer values = words({1, 0, 7, 0, 4096, 0644, 3, 0x61626300});
  Fattr fattr{Bitmap{attr::type, attr::change, attr::size, attr::mode, attr::owner}, values};
  Attributes out;
  ASSERT_EQ(decode_fattr(fattr, out), FattrRead::complete);
  EXPECT_EQ(out.present, fattr.mask);
  EXPECT_EQ(out.type, FileType::regular);
  EXPECT_EQ(out.change, 7u);
  EXPECT_EQ(out.size, 4096u);
  EXPECT_EQ(out.mode, 0644u);
  EXPECT_EQ(out.owner, "abc");
  EXPECT_TRUE(out.has(attr::size));
  EXPECT_FALSE(out.has(attr::fileid));
}

TEST(Attributes, EncodeWhatWasAsked) {
  Attributes values;
  values.size = 5;
  values.mode = 0600;
  values.time_modify_set = {TimeHow::client_time, {1, 2}};
  values.time_access_set = {TimeHow::server_time, {}};
  Buffer scratch(200);
  Fattr out;
  ASSERT_TRUE(encode_fattr(Bitmap{attr::size, attr::mode, attr::time_access_set, attr::time_modify_set},
                           values, scratch, out));
  EXPECT_EQ(Buffer(out.values.begin(), out.values.end()), words({0, 5, 0600, 0, 1, 0, 1, 2}));
  EXPECT_EQ(out.mask.count, 2u);
}

TEST(Attributes, EncodeTrimsTheMask) {
  Bitmap mask{attr::size, attr::mode};
  mask.clear(attr::mode);
  Buffer scratch(100);
  Fattr out;
  ASSERT_TRUE(encode_fattr(mask, Attributes{}, scratch, out));
  EXPECT_EQ(out.mask.count, 1u);
}

TEST(Attributes, EveryTypedAttributeRoundTrips) {
  Buffer scratch(65536);
  uint32_t typed = 0;
  for (uint32_t number = 0; number < attribute_number_end; ++number) {
    const AttributeInfo* info = attribute_info(number);
    ASSERT_NE(info, nullptr);
    SCOPED_TRACE(info->name);
    Attributes values;
    values.owner = "1000";
    values.mimetype = "text";
    values.filehandle = FileHandle(Buffer(20, std::byte{1}));
    Fattr fattr;
    EXPECT_EQ(encode_fattr(Bitmap{number}, values, scratch, fattr), info->typed);
    if (!info->typed) continue;
    ++typed;
    EXPECT_FALSE(fattr.values.empty());
    Attributes back;
    ASSERT_EQ(decode_fattr(fattr, back), FattrRead::complete);
    EXPECT_TRUE(back.has(number));
    Buffer second(65536);
    Fattr again;
    ASSERT_TRUE(encode_fattr(back.present, back, second, again));
    EXPECT_EQ(encode(again), encode(fattr));
    for (size_t n = 0; n < fattr.values.size(); ++n) {
      Attributes cut;
      EXPECT_EQ(decode_fattr(Fattr{fattr.mask, fattr.values.first(n)}, cut), FattrRead::malformed);
      EXPECT_FALSE(cut.has(number));
    }
  }
  EXPECT_EQ(typed, attribute_number_end - 10);
  EXPECT_EQ(attribute_info(attribute_number_end), nullptr);
}

TEST(Attributes, AllTypedAttributesAtOnce) {
  Bitmap all;
  for (uint32_t number = 0; number < attribute_number_end; ++number) {
    if (attribute_info(number)->typed) all.set(number);
  }
  const std::array<Ace, 2> aces{Ace{0, 0, 1, "OWNER@"}, Ace{1, 0, 2, "EVERYONE@"}};
  const std::array<PathComponent, 2> path{PathComponent{"a"}, PathComponent{"b"}};
  const std::array<FsLocation, 1> locations{FsLocation{path, path}};
  const std::array<uint32_t, 2> layouts{1, 4};
  Attributes values;
  values.acl = aces;
  values.dacl = {1, aces};
  values.fs_locations = {path, locations};
  values.fs_layout_types = layouts;
  values.supported_attrs = all;
  Buffer scratch(65536);
  Fattr fattr;
  ASSERT_TRUE(encode_fattr(all, values, scratch, fattr));
  Attributes back;
  ASSERT_EQ(decode_fattr(fattr, back), FattrRead::complete);
  EXPECT_EQ(back.present, all);
  ASSERT_EQ(back.acl.size(), 2u);
  EXPECT_EQ(back.acl.begin()->who, "OWNER@");
  EXPECT_EQ(back.fs_locations.locations.begin()->root_path.size(), 2u);
  Buffer second(65536);
  Fattr again;
  ASSERT_TRUE(encode_fattr(all, back, second, again));
  EXPECT_EQ(encode(again), encode(fattr));
}

TEST(Attributes, UnknownNumberEndsWhatCanBeRead) {
  const Buffer values = words({1, 99, 0, 8});
  Attributes out;
  EXPECT_EQ(decode_fattr(Fattr{Bitmap{attr::type, 61, 200}, values}, out), FattrRead::unknown);
  EXPECT_EQ(out.present, Bitmap{attr::type});
  EXPECT_EQ(decode_fattr(Fattr{Bitmap{attr::type, 200}, values}, out), FattrRead::unknown);
}

TEST(Attributes, BytesLeftOverAreMalformed) {
  const Buffer values = words({1, 99});
  Attributes out;
  EXPECT_EQ(decode_fattr(Fattr{Bitmap{attr::type}, values}, out), FattrRead::malformed);
  EXPECT_EQ(decode_fattr(Fattr{Bitmap{}, {}}, out), FattrRead::complete);
  EXPECT_TRUE(out.present.none());
}

TEST(Attributes, LimitsAndSmallBuffersFail) {
  Attributes values;
  const std::string name(principal_bytes_max + 1, 'x');
  values.owner = name;
  Buffer scratch(4096);
  Fattr out;
  EXPECT_FALSE(encode_fattr(Bitmap{attr::owner}, values, scratch, out));
  values.owner = std::string_view(name).substr(1);
  EXPECT_TRUE(encode_fattr(Bitmap{attr::owner}, values, scratch, out));
  EXPECT_FALSE(encode_fattr(Bitmap{attr::owner}, values, std::span<std::byte>(scratch).first(100), out));
}

TEST(Attributes, TableSaysWhatMayBeSet) {
  for (uint32_t number : {attr::size, attr::mode, attr::owner, attr::owner_group, attr::time_access_set,
                          attr::time_modify_set, attr::acl, attr::mode_umask}) {
    EXPECT_TRUE(attribute_info(number)->settable) << number;
  }
  for (uint32_t number : {attr::type, attr::change, attr::fileid, attr::time_access, attr::time_modify}) {
    EXPECT_FALSE(attribute_info(number)->settable) << number;
    EXPECT_TRUE(attribute_info(number)->readable) << number;
  }
  EXPECT_FALSE(attribute_info(attr::time_access_set)->readable);
  EXPECT_STREQ(attribute_info(attr::mounted_on_fileid)->name, "mounted_on_fileid");
  EXPECT_STREQ(attribute_info(attr::xattr_support)->name, "xattr_support");
}

TEST(Attributes, PrintByName) {
  const Buffer values = words({2, 0, 4096});
  EXPECT_EQ(xdr::print(Fattr{Bitmap{attr::type, attr::size}, values}), "{type=2 size=4096}");
  EXPECT_EQ(xdr::print(Fattr{Bitmap{attr::type, attr::mode}, values}), "{type=2 mode=0 ?}");
  EXPECT_EQ(xdr::print(Bitmap{attr::type, attr::owner, 200}), "<type,owner,200>");
}

}  // namespace
}  // namespace nfsrdma::nfs4::test
