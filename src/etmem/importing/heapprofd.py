"""Perfetto traces with heapprofd's samples in them, as a device gives them.

Field numbers are those of perfetto's protos/perfetto/trace/profiling/profile_packet.proto and profile_common.proto.
Strings, frames and call stacks are told once for a sequence of packets, by number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from etmem.importing.profile import Frame, HeapProfile, Module, Sample
from etmem.importing.wire import MalformedError, Message, fields

_PACKET = 1
_SEQUENCE, _INTERNED, _PROFILE = 10, 12, 37
_STRINGS_OF_PROFILE, _FRAMES_OF_PROFILE, _STACKS_OF_PROFILE, _MAPPINGS_OF_PROFILE = 1, 2, 3, 4
_FUNCTION_NAMES, _FRAMES, _CALLSTACKS = 5, 6, 7
_BUILD_IDS, _PATHS, _MAPPINGS = 16, 17, 19
_FLAWS = {
    4: "the process was being profiled already",
    6: "the process ended the connection",
    7: "samples were lost: heapprofd's buffer overran",
    8: "the buffer was corrupted",
    10: "heapprofd stopped at its guardrail",
}


@dataclass
class _Interned:
    """What one sequence of packets has told so far."""

    texts: dict[int, dict[int, bytes]] = field(default_factory=lambda: defaultdict(dict))
    """By the field that it came in: function names, build ids, parts of paths."""
    mappings: dict[int, Message] = field(default_factory=dict)
    frames: dict[int, Message] = field(default_factory=dict)
    callstacks: dict[int, list[int]] = field(default_factory=dict)

    def learn(self, message: Message, kinds: Mapping[int, tuple[int, ...]], parts: tuple[int, int, int]) -> None:
        """``kinds``: the fields of strings, and what they are strings of."""
        for number, meanings in kinds.items():
            for entry in message.messages(number):
                for meaning in meanings:
                    self.texts[meaning][entry.number(1)] = entry.data(2)
        mappings, frames, callstacks = parts
        self.mappings |= {entry.number(1): entry for entry in message.messages(mappings)}
        self.frames |= {entry.number(1): entry for entry in message.messages(frames)}
        self.callstacks |= {entry.number(1): entry.numbers(2) for entry in message.messages(callstacks)}

    def stack(self, number: int) -> tuple[Frame, ...]:
        """Innermost first; on the wire the outermost comes first."""
        return tuple(self._frame(frame) for frame in reversed(self.callstacks.get(number, [])))

    def _frame(self, number: int) -> Frame:
        frame = self.frames.get(number)
        if frame is None:
            raise MalformedError("a frame was never told")
        name = self.texts[_FUNCTION_NAMES].get(frame.number(2), b"").decode("utf-8", "replace")
        return Frame(self._module(frame.number(3)), frame.number(4), in_file=False, name=name)

    def _module(self, number: int) -> Module | None:
        mapping = self.mappings.get(number)
        if mapping is None:
            return None
        parts = [self.texts[_PATHS].get(part, b"").decode("utf-8", "replace") for part in mapping.numbers(7)]
        # Build ids are bytes on the wire; older versions wrote them as hexadecimal text.
        raw = self.texts[_BUILD_IDS].get(mapping.number(2), b"")
        text = raw.decode("ascii", "replace")
        is_text = len(raw) > 20 and all(letter in "0123456789abcdef" for letter in text)
        return Module("/" + "/".join(part for part in parts if part), text if is_text else raw.hex())


def is_trace(data: bytes) -> bool:
    """Whether it can be a Perfetto trace: nothing but packets."""
    return data[:1] == bytes([_PACKET << 3 | 2])


@dataclass
class _Dump:
    """The samples of one heap of one process, in as many parts as it took."""

    known: _Interned
    parts: list[Message] = field(default_factory=list)
    complete: bool = False


def parse(data: bytes, process: int | None = None) -> HeapProfile | None:
    """The last dump of one process's heaps; None where the trace has no heap samples.

    ``process`` chooses where several were profiled. Raises MalformedError, and ProcessError where it has to be chosen.
    """
    sequences: dict[int, _Interned] = defaultdict(_Interned)
    dumps: dict[tuple[int, str], _Dump] = {}
    for number, value in fields(memoryview(data)):
        if number != _PACKET or isinstance(value, int):
            continue
        packet = Message(value)
        known = sequences[packet.number(_SEQUENCE)]
        for interned in packet.messages(_INTERNED):
            same = {kind: (kind,) for kind in (_FUNCTION_NAMES, _BUILD_IDS, _PATHS)}
            known.learn(interned, same, (_MAPPINGS, _FRAMES, _CALLSTACKS))
        for profile in packet.messages(_PROFILE):
            every = {_STRINGS_OF_PROFILE: (_FUNCTION_NAMES, _BUILD_IDS, _PATHS)}
            known.learn(profile, every, (_MAPPINGS_OF_PROFILE, _FRAMES_OF_PROFILE, _STACKS_OF_PROFILE))
            for part in profile.messages(5):
                _add(dumps, known, part)
            if not profile.number(6):
                for dump in dumps.values():
                    dump.complete = True
    return _profile(dumps, process) if dumps else None


class ProcessError(ValueError):
    """The process is not there, or one of several has to be named."""


def _add(dumps: dict[tuple[int, str], _Dump], known: _Interned, part: Message) -> None:
    """A later dump has all that an earlier one has: it takes its place."""
    place = (part.number(1), part.text(11))
    dump = dumps.get(place)
    if dump is None or dump.complete:
        dump = dumps[place] = _Dump(known)
    dump.parts.append(part)


def _profile(dumps: dict[tuple[int, str], _Dump], process: int | None) -> HeapProfile:
    processes = sorted({pid for pid, _ in dumps})
    if process is None and len(processes) > 1:
        raise ProcessError(f"it has several processes: {', '.join(map(str, processes))}")
    if process is not None and process not in processes:
        raise ProcessError(f"process {process} is not in it: {', '.join(map(str, processes))}")
    chosen = [(heap, dump) for (pid, heap), dump in dumps.items() if process in (None, pid)]
    samples = [
        (dump.known, sample) for _, dump in chosen for part in dump.parts for sample in part.messages(2)
    ]  # fmt: skip
    at_peak = any(sample.number(8) for _, sample in samples)
    flaws = {
        f"{heap or 'malloc'}: {text}"
        for heap, dump in chosen
        for part in dump.parts
        for number, text in _FLAWS.items()
        if part.number(number)
    }
    return HeapProfile(
        format="heapprofd",
        interval_bytes=max((part.number(12) for _, dump in chosen for part in dump.parts), default=0),
        moment="at its own peak" if at_peak else "when the profile was taken",
        samples=tuple(_sample(known, sample, at_peak=at_peak) for known, sample in samples),
        process=f"process {processes[0] if process is None else process}",
        remarks=tuple(sorted(flaws)),
    )


def _sample(known: _Interned, sample: Message, *, at_peak: bool) -> Sample:
    """With ``dump_at_max`` heapprofd tells what was live at the peak, and nothing else."""
    allocated, blocks = sample.number(2), sample.number(5)
    live = sample.number(8) if at_peak else allocated - sample.number(3)
    count = sample.number(9) if at_peak else blocks - sample.number(6)
    return Sample(known.stack(sample.number(1)), live, count, allocated, blocks)
