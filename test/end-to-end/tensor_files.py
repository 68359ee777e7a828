"""npy and safetensors files, and the numbers in them, by the Python standard library alone."""

import array
import json
import math
import struct

# The array module's type codes, and what the two formats call them.
TYPES = {"f32": ("f", "<f4", "F32"), "f64": ("d", "<f8", "F64"), "i32": ("i", "<i4", "I32"), "i64": ("q", "<i8", "I64"),
         "ui8": ("B", "|u1", "U8")}


def hashed(count, stream):
    """lowbias32 of the numbers from 0, a stream apart; reference_losses.py has the same."""
    for i in range(count):
        h = (i + stream * 0x9E3779B9) & 0xFFFFFFFF
        h = (h ^ h >> 16) * 0x7FEB352D & 0xFFFFFFFF
        h = (h ^ h >> 15) * 0x846CA68B & 0xFFFFFFFF
        yield h ^ h >> 16


def uniform(shape, stream, scale):
    """In [-scale, scale), in steps that f32 holds exactly if scale is a power of two."""
    return [((h >> 8) / 2**23 - 1) * scale for h in hashed(math.prod(shape), stream)]


def write_npy(path, dtype, shape, values):
    code, descr, _ = TYPES[dtype]
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(array.array(code, values).tobytes())


def write_safetensors(path, dtype, tensors):
    """`tensors`: name → (shape, values) of `dtype`, or (shape, values, dtype)."""
    header, data = {}, b""
    for name, (shape, values, *own) in tensors.items():
        code, _, name_of_type = TYPES[own[0] if own else dtype]
        part = array.array(code, values).tobytes()
        header[name] = {"dtype": name_of_type, "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_npy_bytes(path):
    """The elements' bytes of a file that gpuc wrote."""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack("<H", content[8:10])
    return content[10 + length:]


def read_safetensors(path):
    """name → values."""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack("<Q", content[:8])
    codes = {name_of_type: code for code, _, name_of_type in TYPES.values()}
    tensors = {}
    for name, entry in json.loads(content[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = array.array(codes[entry["dtype"]], content[8 + length + begin:8 + length + end]).tolist()
    return tensors
