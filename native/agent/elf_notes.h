/* The build id of a loaded module, as lower-case hex. */
#pragma once

#include <link.h>
#include <stddef.h>
#include <string.h>

namespace etmem::elf {

/* The characters written (without a terminator; 0 when the module has no build id). */
inline size_t build_id(const dl_phdr_info& info, char* out, size_t capacity) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info.dlpi_addr + segment.p_vaddr);
    const char* end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const ElfW(Nhdr)* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* name = at + sizeof *note;
      const unsigned char* id = reinterpret_cast<const unsigned char*>(name + ((note->n_namesz + 3) & ~3u));
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
        size_t length = 0;
        for (size_t k = 0; k < note->n_descsz && length + 2 <= capacity; ++k) {
          out[length++] = "0123456789abcdef"[id[k] >> 4];
          out[length++] = "0123456789abcdef"[id[k] & 15];
        }
        return length;
      }
      at = reinterpret_cast<const char*>(id) + ((note->n_descsz + 3) & ~3u);
    }
  }
  return 0;
}

}  // namespace etmem::elf
