// Text from files and command lines, made fit to stand in one line on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace gpuc {

/// Whether `text` is characters alone, in UTF-8: nothing that a terminal takes for an order (control
/// characters, of which escape sequences are made, U+0080 to U+009F among them), that ends a line, or that
/// turns the direction in which it is read.
bool isPrintable(std::string_view text);

/// `text` with each byte of what is not printable as \xNN.
std::string printable(std::string_view text);

/// 'text', printable, with quotes and backslashes escaped; beyond 100 bytes cut off with "…".
std::string inQuotes(std::string_view text);

/// The first `most_bytes` of `text`, less a character that is cut in two.
std::string_view firstBytes(std::string_view text, size_t most_bytes);

}  // namespace gpuc
