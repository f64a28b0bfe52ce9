#include "match.h"

#include <string.h>

#include "trace_format.h"

namespace {

using etmem::format::Event;

constexpr uint64_t kMaxStamp = uint64_t{1} << 62;
constexpr uint64_t kSizeMask = (uint64_t{1} << 48) - 1;

/* Size, kind and flags share a word: one load, where three bit fields are three. */
uint64_t packed_word(const Event& event) {
  uint64_t word;
  memcpy(&word, reinterpret_cast<const char*>(&event) + 16, sizeof word);
  return word;
}

bool is_known_kind(uint64_t kind) {
  return (kind >= etmem::format::kAlloc && kind <= etmem::format::kBreak) ||
         (kind >= etmem::format::kHeapAlloc && kind <= etmem::format::kHeapReset);
}

bool is_known_scope(uint32_t scope, const uint8_t* scopes, uint64_t count) {
  return scope == 0 || (scope < count && scopes[scope] != 0);
}

int check(uint64_t stamp, uint64_t address, uint64_t word) {
  const uint64_t kind = word >> 48 & 0xff;
  if (!is_known_kind(kind)) return ETMEM_READ_KIND;
  const uint64_t size = kind == etmem::format::kBreak ? 0 : word & kSizeMask;
  return stamp > kMaxStamp || address + size < address ? ETMEM_READ_RANGE : ETMEM_READ_OK;
}

}  // namespace

int etmem_read_survey(const void* records, const uint64_t* first, const uint64_t* last, uint64_t chunks,
                      const uint8_t* scopes, uint64_t scope_count, EtmemSurvey* survey) {
  const Event* events = static_cast<const Event*>(records);
  EtmemSurvey found = {0, UINT64_MAX, 0, 0, 0};
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    for (uint64_t slot = first[chunk]; slot < last[chunk]; ++slot) {
      const uint64_t stamp = events[slot].stamp;
      if (stamp == 0) continue;
      const int status = check(stamp, events[slot].address, packed_word(events[slot]));
      if (status != ETMEM_READ_OK) {
        survey->bad_slot = slot;
        return status;
      }
      ++found.events;
      if (stamp < found.first_stamp) found.first_stamp = stamp;
      if (stamp > found.last_stamp) found.last_stamp = stamp;
      if (!is_known_scope(events[slot].scope, scopes, scope_count)) ++found.unknown_scopes;
    }
  }
  if (found.events == 0) found.first_stamp = 0;
  *survey = found;
  return ETMEM_READ_OK;
}

int etmem_read_order(const void* records, const uint64_t* first, const uint64_t* last, uint64_t chunks,
                     EtmemSurvey* survey, uint32_t* order) {
  /* Stamps are nearly dense: putting each event at its stamp sorts them, whatever a signal handler mixed up. */
  const Event* events = static_cast<const Event*>(records);
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    for (uint64_t slot = first[chunk]; slot < last[chunk]; ++slot) {
      const uint64_t stamp = events[slot].stamp;
      if (stamp == 0) continue;
      /* The file may have grown since the survey: what came in later is not part of this reading. */
      if (stamp < survey->first_stamp || stamp > survey->last_stamp) continue;
      uint32_t& place = order[stamp - survey->first_stamp];
      if (place != 0) {
        survey->bad_slot = slot;
        return ETMEM_READ_DUPLICATE;
      }
      place = static_cast<uint32_t>(slot);
    }
  }
  uint64_t kept = 0;
  const uint64_t span = survey->events == 0 ? 0 : survey->last_stamp - survey->first_stamp + 1;
  for (uint64_t at = 0; at < span; ++at) {
    if (order[at] != 0) order[kept++] = order[at];
  }
  survey->events = kept;
  return ETMEM_READ_OK;
}

void etmem_read_columns(const void* records, const uint32_t* order, uint64_t count, const uint32_t* threads,
                        uint64_t slots_per_chunk, const uint8_t* scopes, uint64_t scope_count,
                        const EtmemColumns* columns) {
  const Event* events = static_cast<const Event*>(records);
  const EtmemColumns& out = *columns;
  uint64_t chunk = UINT64_MAX, begin = 0, end = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t slot = order[i];
    const Event& event = events[slot];
    if (out.stamp) out.stamp[i] = event.stamp;
    if (out.address) out.address[i] = event.address;
    const uint64_t word = packed_word(event);
    if (out.size) out.size[i] = word & kSizeMask;
    if (out.kind) out.kind[i] = static_cast<uint8_t>(word >> 48);
    if (out.flags) out.flags[i] = static_cast<uint8_t>(word >> 56);
    if (out.scope) out.scope[i] = is_known_scope(event.scope, scopes, scope_count) ? event.scope : 0;
    if (out.stack) out.stack[i] = event.stack;
    if (out.thread) {
      if (slot < begin || slot >= end) {  // dividing for each event would cost as much as all the rest
        chunk = slot / slots_per_chunk;
        begin = chunk * slots_per_chunk;
        end = begin + slots_per_chunk;
      }
      out.thread[i] = threads[chunk];
    }
  }
}

namespace {

/* Numbers that stay in the cache while plane after plane is put into them. */
constexpr uint64_t kTile = 2048;

template <typename Number>
void read_planes(const uint8_t* planes, uint64_t count, Number* out) {
  const uint8_t* used[sizeof(Number)];
  unsigned shifts[sizeof(Number)], uses = 0;
  for (unsigned place = 0; place < sizeof(Number); ++place) {
    const uint8_t* plane = planes + place * count;
    /* Most high planes are all zero. */
    if (place != 0 && plane[0] == 0 && memcmp(plane, plane + 1, count - 1) == 0) continue;
    used[uses] = plane;
    shifts[uses++] = 8 * place;
  }
  for (uint64_t first = 0; first < count; first += kTile) {
    const uint64_t last = count - first < kTile ? count : first + kTile;
    for (uint64_t i = first; i < last; ++i) out[i] = used[0][i];
    for (unsigned use = 1; use < uses; ++use) {
      for (uint64_t i = first; i < last; ++i) out[i] |= static_cast<Number>(used[use][i]) << shifts[use];
    }
  }
}

}  // namespace

void etmem_read_planes(const uint8_t* planes, uint64_t count, uint32_t width, int steps, void* out) {
  if (count == 0) return;
  if (width == 1) memcpy(out, planes, count);
  if (width == 4) read_planes(planes, count, static_cast<uint32_t*>(out));
  if (width != 8) return;
  uint64_t* numbers = static_cast<uint64_t*>(out);
  read_planes(planes, count, numbers);
  if (steps == 0) return;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    sum += numbers[i] >> 1 ^ (0 - (numbers[i] & 1));
    numbers[i] = sum;
  }
}
