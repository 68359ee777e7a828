#include "runtime/plan/seal.h"

#include <cinttypes>
#include <cstring>

#include "runtime/base/file_kind.h"
#include "runtime/plan/header.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gpuc {

uint64_t planChecksum(std::string_view payload) {
  return XXH3_64bits_withSeed(payload.data(), payload.size(), payload.size());
}

std::string sealPlan(std::string_view payload) {
  PlanHeader header = {};
  std::memcpy(header.magic, kPlanMagic, sizeof(header.magic));
  header.format_version = kPlanFormatVersion;
  header.payload_bytes = payload.size();
  header.checksum = planChecksum(payload);
  std::string file(sizeof(header) + payload.size(), '\0');
  std::memcpy(file.data(), &header, sizeof(header));
  if (!payload.empty()) std::memcpy(file.data() + sizeof(header), payload.data(), payload.size());
  return file;
}

Result<std::string_view> openSeal(std::string_view file) {
  if (file.size() < sizeof(kPlanMagic) || std::memcmp(file.data(), kPlanMagic, sizeof(kPlanMagic)) != 0)
    return Status::error("not a gpuc plan: it does not begin with 'gpucplan'" +
                         explainFileKind(file, FileRole::plan));
  PlanHeader header;
  if (file.size() < sizeof(header))
    return errorf("plan cut short: %zu bytes, the header alone takes %zu", file.size(), sizeof(header));
  std::memcpy(&header, file.data(), sizeof(header));
  if (header.format_version != kPlanFormatVersion)
    return errorf("plan format version %" PRIu32 ", this runtime expects %" PRIu32
                  ": compile the model again with the gpuc-compile of this version",
                  header.format_version, kPlanFormatVersion);
  if (header.reserved != 0) return errorf("damaged plan: reserved bytes of the header are not 0");
  std::string_view payload = file.substr(sizeof(header));
  if (payload.size() != header.payload_bytes)
    return errorf("plan %s: %zu bytes follow the header, it announces %" PRIu64,
                  payload.size() < header.payload_bytes ? "cut short" : "too long", payload.size(),
                  header.payload_bytes);
  uint64_t checksum = planChecksum(payload);
  if (checksum != header.checksum)
    return errorf("damaged plan: checksum %016" PRIx64 ", the header says %016" PRIx64, checksum,
                  header.checksum);
  return payload;
}

}  // namespace gpuc
