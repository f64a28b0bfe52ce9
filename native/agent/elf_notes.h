/* The notes of a loaded module: its build id as lower-case hex, and others. */
#pragma once

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace etmem::elf {

struct Note {
  uint32_t type;
  const char* name;
  size_t name_bytes;  // with its terminator
  const unsigned char* data;
  size_t bytes;

  bool is_of(const char* owner) const {
    return name_bytes == strlen(owner) + 1 && memcmp(name, owner, name_bytes) == 0;
  }
};

template <typename Visit, typename Argument>
void visit_notes(const dl_phdr_info& info, Visit visit, Argument argument) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE || segment.p_align > 4) continue;  // those of 8 are GNU properties
    const char* at = reinterpret_cast<const char*>(info.dlpi_addr + segment.p_vaddr);
    const char* end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const ElfW(Nhdr)* header = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* name = at + sizeof *header;
      const unsigned char* data = reinterpret_cast<const unsigned char*>(name + ((header->n_namesz + 3) & ~3u));
      visit(Note{header->n_type, name, header->n_namesz, data, header->n_descsz}, argument);
      at = reinterpret_cast<const char*>(data) + ((header->n_descsz + 3) & ~3u);
    }
  }
}

struct HexText {
  char* out;
  size_t capacity;
  size_t length;
};

inline void take_build_id(const Note& note, HexText* text) {
  if (note.type != NT_GNU_BUILD_ID || !note.is_of("GNU") || text->length != 0) return;
  for (size_t k = 0; k < note.bytes && text->length + 2 <= text->capacity; ++k) {
    text->out[text->length++] = "0123456789abcdef"[note.data[k] >> 4];
    text->out[text->length++] = "0123456789abcdef"[note.data[k] & 15];
  }
}

/* The characters written (without a terminator; 0 when the module has no build id). */
inline size_t build_id(const dl_phdr_info& info, char* out, size_t capacity) {
  HexText text = {out, capacity, 0};
  visit_notes(info, take_build_id, &text);
  return text.length;
}

}  // namespace etmem::elf
