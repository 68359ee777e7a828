"""How lit runs the tests that are text: every .mlir and .test file under test/, named after what it tests.

`lit build/test/lit` runs all; `lit test/passes/fuse.mlir` one, if the build lies in build/.
"""

import os

import lit.formats

if not hasattr(config, "gpuc_binary"):
    # Started on a source file: the build's settings come first, and they load this file again.
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    site = os.path.join(source, "build", "test", "lit", "lit.site.cfg.py")
    if not os.path.exists(site):
        lit_config.fatal(f"{site} does not exist: configure a build in build/, or give lit the test/lit folder of another")
    lit_config.load_config(config, site)
    raise SystemExit  # lit stops reading this file here and keeps what was loaded

config.name = "gpuc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "corpus", "fuzz", "placement", "runtime"]
config.test_source_root = os.path.join(config.gpuc_source, "test")
config.test_exec_root = os.path.join(config.gpuc_binary, "test", "lit")

# gpuc's tools first, then FileCheck, not and split-file.
path = [os.path.join(config.gpuc_binary, "bin"), config.llvm_tools, os.environ["PATH"]]
config.environment["PATH"] = os.pathsep.join(path)
config.environment["XDG_CACHE_HOME"] = os.path.join(config.gpuc_binary, "test", "cache")  # not the user's
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --dump-input-filter=all"
config.substitutions.append(("%source", config.gpuc_source))
config.substitutions.append(("%build", config.gpuc_binary))
config.substitutions.append(("%python", "python3"))
# ONNX models are written as text, and encoded by the definition that the importer is built with.
config.substitutions.append(("%onnx_proto", config.onnx_proto))
config.substitutions.append(("%onnx_encode", f"protoc --encode=onnx.ModelProto -I {config.onnx_proto} onnx.proto"))
