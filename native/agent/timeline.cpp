#include <stdlib.h>
#include <string.h>

#include "match.h"

namespace {

constexpr uint64_t kWindow = ETMEM_FOLD_STAMPS;

struct Change {
  uint64_t stamp;
  int64_t by;
};

/* What changes in each window of stamps, so that one window at a time is laid out stamp by stamp. */
class Changes {
 public:
  bool init(const EtmemLive& live, uint64_t since, uint64_t until) {
    since_ = since;
    windows_ = (until - since) / kWindow + 1;
    first_ = static_cast<uint64_t*>(calloc(windows_ + 2, sizeof(uint64_t)));
    if (first_ == nullptr) return false;
    for (uint64_t i = 0; i < live.count; ++i) {
      if (!takes_part(live, i, since, until)) continue;
      if (live.begin[i] > since) ++first_[window(live.begin[i]) + 2];
      if (live.end[i] <= until) ++first_[window(live.end[i]) + 2];
    }
    for (uint64_t at = 2; at < windows_ + 2; ++at) first_[at] += first_[at - 1];
    changes_ = static_cast<Change*>(malloc((first_[windows_ + 1] + 1) * sizeof(Change)));
    if (changes_ == nullptr) return false;
    for (uint64_t i = 0; i < live.count; ++i) {
      if (!takes_part(live, i, since, until)) continue;
      if (live.begin[i] > since) changes_[first_[window(live.begin[i]) + 1]++] = {live.begin[i], live.weights[i]};
      if (live.end[i] <= until) changes_[first_[window(live.end[i]) + 1]++] = {live.end[i], -live.weights[i]};
    }
    return true;
  }
  void destroy() {
    free(first_);
    free(changes_);
  }

  /* Those of a window are [begin(w), begin(w + 1)). */
  const Change* begin(uint64_t window) const { return changes_ + first_[window]; }
  uint64_t windows() const { return windows_; }

  static bool takes_part(const EtmemLive& live, uint64_t i, uint64_t since, uint64_t until) {
    const bool is_itself = live.folded == nullptr || live.folded_count[i] == 0;
    return live.wanted[i] != 0 && is_itself && live.end[i] > since && live.begin[i] <= until;
  }

 private:
  uint64_t window(uint64_t stamp) const { return (stamp - since_) / kWindow; }

  uint64_t since_ = 0, windows_ = 0;
  uint64_t* first_ = nullptr; /* while changes are put in place, shifted by one */
  Change* changes_ = nullptr;
};

/* Of the values between two bins the first, lowest, highest and last; without bins all. */
class Thinned {
 public:
  Thinned(const uint64_t* bins, uint64_t count, uint64_t* stamps, int64_t* values, int64_t before)
      : bins_(bins), bin_count_(count), stamps_(stamps), values_(values) {
    put({0, before});
  }

  void add(uint64_t stamp, int64_t value) {
    if (bins_ == nullptr) return put({stamp, value});
    if (held_ != 0 && stamp >= ends_) flush();
    if (held_ == 0) {
      while (bin_ < bin_count_ && bins_[bin_] <= stamp) ++bin_;
      ends_ = bin_ < bin_count_ ? bins_[bin_] : UINT64_MAX;
      first_ = lowest_ = highest_ = {stamp, value};
    }
    if (value < lowest_.by) lowest_ = {stamp, value};
    if (value > highest_.by) highest_ = {stamp, value};
    last_ = {stamp, value};
    ++held_;
  }

  uint64_t finish() {
    if (held_ != 0) flush();
    return kept_;
  }

 private:
  void flush() {
    const bool rises = lowest_.stamp < highest_.stamp;
    put(first_);
    put(rises ? lowest_ : highest_);
    put(rises ? highest_ : lowest_);
    put(last_);
    held_ = 0;
  }

  void put(Change point) {
    if (kept_ != 0 && (point.stamp <= stamps_[kept_ - 1] || point.by == values_[kept_ - 1])) return;
    stamps_[kept_] = point.stamp;
    values_[kept_++] = point.by;
  }

  const uint64_t* bins_;
  uint64_t bin_count_, bin_ = 0, ends_ = 0, held_ = 0;
  uint64_t* stamps_;
  int64_t* values_;
  uint64_t kept_ = 0;
  Change first_ = {}, lowest_ = {}, highest_ = {}, last_ = {};
};

/* What is live before anything changes after `since`. */
int64_t live_at(const EtmemLive& live, uint64_t since, uint64_t until) {
  int64_t sum = 0;
  for (uint64_t i = 0; i < live.count; ++i) {
    if (Changes::takes_part(live, i, since, until) && live.begin[i] <= since) sum += live.weights[i];
  }
  return sum;
}

/* What folded blocks that begin in this window change, by stamp: there and, as they live for less than kWindow, in the
 * next one. */
void lay_out_folded(const EtmemLive& live, uint64_t& next, uint64_t start, uint64_t until, int64_t* changes) {
  const EtmemFolded& folded = *live.folded;
  for (; next < folded.count && folded.begin[next] < start + kWindow && folded.begin[next] <= until; ++next) {
    const uint32_t row = folded.row[next];
    if (live.wanted[row] == 0) continue;
    const uint64_t begin = folded.begin[next] - start;
    changes[begin] += live.weights[row];
    changes[begin + folded.life[next]] -= live.weights[row];
  }
}

}  // namespace

uint64_t etmem_read_timeline(const EtmemLive* live, const uint64_t* bins, uint64_t bin_count, uint64_t since,
                             uint64_t until, uint64_t* stamps, int64_t* values) {
  Changes changes;
  /* A folded block lives for less than kWindow: what ends beyond this window ends in the next. */
  const uint64_t span = until - since < kWindow ? until - since + 1 : kWindow;
  const uint64_t room = live->folded == nullptr ? span : 2 * kWindow;
  int64_t* at = static_cast<int64_t*>(calloc(room, sizeof(int64_t)));
  const bool ready = changes.init(*live, since, until);
  uint64_t kept = 0;
  if (at != nullptr && ready) {
    int64_t sum = live_at(*live, since, until);
    Thinned out(bins, bin_count, stamps, values, sum);
    uint64_t next = 0;
    while (live->folded != nullptr && next < live->folded->count && live->folded->begin[next] < since) ++next;
    for (uint64_t window = 0; window < changes.windows(); ++window) {
      const uint64_t start = since + window * kWindow;
      for (const Change* one = changes.begin(window); one != changes.begin(window + 1); ++one) {
        at[one->stamp - start] += one->by;
      }
      if (live->folded != nullptr) lay_out_folded(*live, next, start, until, at);
      const uint64_t last = until - start < kWindow - 1 ? until - start : kWindow - 1;
      for (uint64_t i = 0; i <= last; ++i) {
        if (at[i] == 0) continue;
        sum += at[i];
        out.add(start + i, sum);
      }
      if (live->folded != nullptr) {
        memcpy(at, at + kWindow, kWindow * sizeof(int64_t));
        memset(at + kWindow, 0, kWindow * sizeof(int64_t));
      } else {
        memset(at, 0, span * sizeof(int64_t));
      }
    }
    kept = out.finish();
  }
  changes.destroy();
  free(at);
  return kept;
}
