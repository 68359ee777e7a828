// Plain data as Python's pickle has it (protocol 2), put together from the inside out.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace gpuc::pickle {

std::string number(uint64_t value);
std::string text(std::string_view value);
std::string dict(std::initializer_list<std::pair<std::string_view, std::string>> items);

/// A list that grows.
class List {
 public:
  void append(std::string_view value) { ((items_ += value) += 'a'); }
  std::string str() const { return "]" + items_; }

 private:
  std::string items_;
};

/// The file of a value.
std::string file(std::string_view value);

}  // namespace gpuc::pickle
