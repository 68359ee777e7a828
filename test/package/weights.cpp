// With the installed package alone: variables out of a session into safetensors, and back.
#include <runtime/weights/variable_store.h>

#include <cstdio>
#include <span>
#include <vector>

gpuc::Status run(const char *path, const char *file) {
  GPUC_ASSIGN_OR_RETURN(gpuc::Plan plan, gpuc::Plan::load(path));
  GPUC_ASSIGN_OR_RETURN(gpuc::Session session, gpuc::Session::create(plan));
  std::vector<float> written(64), read(64);
  for (int i = 0; i < 64; ++i)
    written[i] = static_cast<float>(i);
  GPUC_RETURN_IF_ERROR(session.writeVariable("w", std::as_bytes(std::span(written))));
  gpuc::VariableStore store(session);
  GPUC_RETURN_IF_ERROR(store.save(file));

  GPUC_RETURN_IF_ERROR(session.writeVariable("w", std::as_bytes(std::span(read)))); // zeros
  GPUC_ASSIGN_OR_RETURN(gpuc::SafetensorsFile saved, gpuc::SafetensorsFile::open(file));
  GPUC_RETURN_IF_ERROR(store.restore(saved));
  GPUC_RETURN_IF_ERROR(session.readVariable("w", std::as_writable_bytes(std::span(read))));
  return read == written ? gpuc::okStatus() : gpuc::errorf("what was restored is not what was saved");
}

int main(int argc, char **argv) {
  gpuc::Status status = argc == 3 ? run(argv[1], argv[2]) : gpuc::errorf("usage: uses_weights PLAN FILE");
  if (status.ok())
    return 0;
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return 1;
}
