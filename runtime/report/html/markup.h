// HTML as text: names that are safe in it, numbers, axes.
#pragma once

#include <string>
#include <string_view>

namespace gpuc::html {

/// `text` as HTML has it, in an element or between quotes; a long one cut off with "…".
std::string escaped(std::string_view text);

/// "1.82 MiB (1907840 bytes)"
std::string bytesText(uint64_t bytes);

/// "3 commands", "1 command"
std::string countText(uint64_t count, const std::string& noun);

/// A number as attributes have it: at most six digits, no exponent.
std::string number(double value);

/// Four digits of it, in thousands, millions … from ten thousand on: "12.86M".
std::string shortNumber(double value);

/// 1, 2 or 5 times a power of ten: the distance of some eight marks on an axis of that length.
double stepOf(double length);

/// The style of a mark at `share` of an axis, which begins at `side`: `left:12.5%`.
std::string at(const char* side, double share);

/// Marks at round numbers from 0 to `end`, along the axis that begins at `side`. page.js draws them anew
/// where a part is shown.
std::string ticks(const char* side, double end);

}  // namespace gpuc::html
