// .npy in and out.
#include "runtime/state/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "test/runtime/temporary_folder.h"

namespace gpuc {
namespace {

/// A file of version `major` with this dictionary.
std::string npyFile(const std::string& dictionary, const std::string& data, char major = 1) {
  std::string bytes = std::string("\x93NUMPY") + major + '\0';
  size_t length_bytes = major == 1 ? 2 : 4;
  for (size_t i = 0; i < length_bytes; ++i) bytes += static_cast<char>(dictionary.size() >> (8 * i));
  return bytes + dictionary + data;
}

TEST(Npy, RoundTripsEveryType) {
  TemporaryFolder folder;
  std::vector<char> data(6 * 8);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 37);
  for (int i = 0; i < kDataTypeCount; ++i) {
    DataType type = static_cast<DataType>(i);
    if (type == DataType::bf16) continue;
    if (type == DataType::i1) std::fill(data.begin(), data.end(), char{1});
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {6}, {2, 3}, {1, 2, 3}, {0, 4}}) {
      TensorSpec spec{"t", type, shape};
      ASSERT_TRUE(writeNpy(folder / "t.npy", spec, data.data()).ok());
      Result<NpyArray> array = readNpy(folder / "t.npy");
      ASSERT_TRUE(array.ok()) << array.message();
      EXPECT_EQ(array->spec.str(), spec.str());
      EXPECT_EQ(array->data, std::string_view(data.data(), static_cast<size_t>(spec.sizeBytes())));
    }
  }
}

// The bytes of numpy.save of numpy.array([[1, 2], [3, 4], [5, 6]], dtype='<i4'), numpy 2.4.
TEST(Npy, WritesWhatNumpyWrites) {
  std::vector<int32_t> data = {1, 2, 3, 4, 5, 6};
  std::string dictionary = "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2), }";
  dictionary += std::string(128 - 10 - dictionary.size() - 1, ' ') + "\n";
  std::string expected = npyFile(dictionary, {reinterpret_cast<const char*>(data.data()), 24});
  EXPECT_EQ(npyBytes({"t", DataType::i32, {3, 2}}, data.data()), expected);
}

TEST(Npy, Bfloat16IsWrittenAsFloat) {
  std::vector<uint16_t> data = {0x3f80, 0xc049};  // 1, -3.140625
  Result<NpyArray> array = parseNpy(npyBytes({"t", DataType::bf16, {2}}, data.data()), "t");
  ASSERT_TRUE(array.ok()) << array.message();
  EXPECT_EQ(array->spec.str(), "2xf32");
  // The parsed bytes are gone with their string; check through a kept one.
  std::string bytes = npyBytes({"t", DataType::bf16, {2}}, data.data());
  float values[2];
  std::memcpy(values, parseNpy(bytes, "t")->data.data(), 8);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], -3.140625f);
}

TEST(Npy, ReadsAllVersionsAndSpellings) {
  std::string four(4, 'x');
  for (char version : {1, 2, 3}) {
    std::string file = npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", four, version);
    EXPECT_TRUE(parseNpy(file, "f").ok());
  }
  std::string other = npyFile("{\"shape\":(2,2),\"fortran_order\":False,\"descr\":\"<u1\"}", four);
  Result<NpyArray> array = parseNpy(other, "f");
  ASSERT_TRUE(array.ok()) << array.message();
  EXPECT_EQ(array->spec.str(), "2x2xui8");
}

void expectRefusal(const std::string& dictionary, const std::string& data, const std::string& part) {
  expectError(parseNpy(npyFile(dictionary, data), "f.npy"), "f.npy: " + part);
}

TEST(Npy, SaysHowToConvertWhatItDoesNotRead) {
  expectRefusal("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "abcd",
                "is big-endian ('>f4'); save a.astype(a.dtype.newbyteorder('<'))");
  expectRefusal("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", "abcd",
                "is in Fortran order; save numpy.ascontiguousarray(a)");
  expectRefusal("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "abcdefgh",
                "has elements of type '<c8', known are f8 f4 f2 i8 i4 i1 u1 b1");
  expectRefusal("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "abcd", "holds records");
}

TEST(Npy, RefusesBadHeaders) {
  expectError(parseNpy("\x89PNG", "f"), "f: is not a .npy file");
  expectError(
      parseNpy(std::string("PK\3\4") + std::string(22, '\0') + std::string("\x05\0\0\0x.npy", 9), "f"),
      "f: is not a .npy file (it does not begin with \\x93NUMPY); it is a zip of NumPy arrays (.npz): save "
      "each array by numpy.save");
  std::string extents;
  for (int i = 0; i < 65; ++i) extents += "1,";
  expectRefusal("{'descr': '|u1', 'fortran_order': False, 'shape': (" + extents + ")}", "x",
                "has 65 extents, arrays have at most 64");
  expectError(parseNpy(std::string("\x93NUMPY\x01\x00", 8), "f"), "f: cut short within its header");
  expectError(parseNpy(std::string("\x93NUMPY\x02\x00\x01\x00", 10), "f"), "f: cut short within its header");
  expectError(parseNpy(std::string("\x93NUMPY\x01\x00\xff\xff{", 11), "f"), "f: cut short within its header");
  expectError(parseNpy(std::string("\x93NUMPY\x04\x00\x00\x00", 10), "f"), "f: is of .npy version 4.0");
  expectRefusal("", "", "bad header: expected '{' at byte 0");
  expectRefusal("{'descr': '<f4", "", "bad header: expected the end of the string");
  expectRefusal("{descr: '<f4'}", "", "bad header: expected a string at byte 1");
  expectRefusal("{'descr' '<f4'}", "", "bad header: expected ':' at byte 9");
  expectRefusal("{'descr': 4}", "", "bad header: expected a string at byte 10");
  expectRefusal("{'descr': '<f4' 'shape': ()}", "", "bad header: expected '}' at byte 16");
  expectRefusal("{'descr': '<f4', 'descr': '<f4'}", "", "bad header: 'descr' stands twice");
  expectRefusal("{'color': 'red'}", "", "bad header: unknown key 'color'");
  expectRefusal("{'fortran_order': Maybe}", "", "bad header: expected True or False at byte 18");
  expectRefusal("{'shape': (-1,)}", "", "bad header: expected a non-negative integer of 64 bits at byte 11");
  expectRefusal("{'shape': (99999999999999999999,)}", "", "bad header: expected a non-negative integer");
  expectRefusal("{'shape': (1 2)}", "", "bad header: expected ')' at byte 13");
  expectRefusal("{'shape': 3}", "", "bad header: expected '(' at byte 10");
  expectRefusal("{'shape': ()}", "", "bad header: no 'descr'");
  expectRefusal("{} 5", "", "bad header: expected nothing more at byte 3");
}

TEST(Npy, RefusesLengthsThatDisagree) {
  std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}";
  expectRefusal(dictionary, "1234567",
                "cut short: 7 bytes of data, but its header says 2xf32, which makes 8");
  expectRefusal(dictionary, "123456789",
                "too long: 9 bytes of data, but its header says 2xf32, which makes 8");
  expectRefusal("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "",
                "has a shape of more elements than 64 bits can count");
  expectRefusal("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807, 4)}", "",
                "has a shape of more elements than 64 bits can count");
}

TEST(Npy, ABoolIsZeroOrOne) {
  std::string dictionary = "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}";
  expectRefusal(dictionary, std::string("\x01\x00\x02", 3), "has the byte 2 at element 2, a bool is 0 or 1");
}

TEST(Npy, MissingAndEmptyFiles) {
  TemporaryFolder folder;
  expectError(readNpy(folder / "absent.npy"), "absent.npy: No such file or directory");
  expectError(readNpy(folder.write("empty.npy", "")), "empty.npy: is not a .npy file");
}

}  // namespace
}  // namespace gpuc
