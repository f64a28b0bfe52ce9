"""Reads profile.proto with protobuf itself: the messages' fields as github.com/google/pprof declares them."""

from __future__ import annotations

import gzip
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELDS = {
    "Profile": "1 sample_type ValueType*, 2 sample Sample*, 3 mapping Mapping*, 4 location Location*, "
    "5 function Function*, 6 string_table string*, 7 drop_frames int64, 8 keep_frames int64, 9 time_nanos int64, "
    "10 duration_nanos int64, 11 period_type ValueType, 12 period int64, 13 comment int64*, "
    "14 default_sample_type int64",
    "ValueType": "1 type int64, 2 unit int64",
    "Sample": "1 location_id uint64*, 2 value int64*, 3 label Label*",
    "Label": "1 key int64, 2 str int64, 3 num int64, 4 num_unit int64",
    "Mapping": "1 id uint64, 2 memory_start uint64, 3 memory_limit uint64, 4 file_offset uint64, 5 filename int64",
    "Location": "1 id uint64, 2 mapping_id uint64, 3 address uint64, 4 line Line*, 5 is_folded bool",
    "Line": "1 function_id uint64, 2 line int64",
    "Function": "1 id uint64, 2 name int64, 3 system_name int64, 4 filename int64, 5 start_line int64",
}
_F = descriptor_pb2.FieldDescriptorProto
_SCALARS = {"int64": _F.TYPE_INT64, "uint64": _F.TYPE_UINT64, "bool": _F.TYPE_BOOL, "string": _F.TYPE_STRING}


def parse(content: bytes) -> Any:
    profile = _profile().FromString(gzip.decompress(content))
    assert profile.string_table[0] == ""
    assert not profile.FindInitializationErrors()
    return profile


def _profile() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
    for name, text in _FIELDS.items():
        message = file.message_type.add(name=name)
        for part in text.split(", "):
            number, field, kind = part.split()
            label = _F.LABEL_REPEATED if kind.endswith("*") else _F.LABEL_OPTIONAL
            kind = kind.rstrip("*")
            added = message.field.add(name=field, number=int(number), label=label)
            if kind in _SCALARS:
                added.type = _SCALARS[kind]
            else:
                added.type, added.type_name = _F.TYPE_MESSAGE, f".perftools.profiles.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))
