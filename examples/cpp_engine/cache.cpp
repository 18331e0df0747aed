// The rules of the cache. The order of choices is that of common engines: free blocks are taken
// from the front of a list, freed ones go to its front, or to its back while they can still be hit.
#include "cache.hpp"

#include <algorithm>
#include <climits>
#include <numeric>

namespace {

int ceil_div(int amount, int size) { return (amount + size - 1) / size; }
int align_down(int amount, int size) { return amount - amount % size; }

Table trimmed(Table blocks, int length, int block_size) {
  if (const size_t needed = ceil_div(length, block_size); blocks.size() > needed) {
    blocks.resize(needed);
  }
  return blocks;
}

template <class Items, class Item>
bool contains(const Items& items, const Item& item) {
  return std::find(items.begin(), items.end(), item) != items.end();
}

}  // namespace

bool Config::fine() const {
  return std::any_of(groups.begin(), groups.end(),
                     [&](const Group& g) { return g.recurrent && g.block_size > hash_unit; });
}

int Config::alignment() const {
  if (fine()) return hash_unit;
  return std::accumulate(groups.begin(), groups.end(), 1,
                         [](int so_far, const Group& g) { return std::lcm(so_far, g.block_size); });
}

// --- the pool --------------------------------------------------------------------------------

Pool::Pool(int num_blocks) : refs_(num_blocks), place_(num_blocks), keys_(num_blocks) {
  for (BlockId block = 1; block < num_blocks; ++block) {
    place_[block] = free_.insert(free_.end(), block);
  }
}

BlockId Pool::take() {
  const BlockId block = free_.front();
  free_.pop_front();
  unpublish(block);
  refs_[block] = 1;
  return block;
}

void Pool::hold(BlockId block) {
  if (refs_[block]++ == 0) free_.erase(place_[block]);
}

void Pool::drop(const std::vector<BlockId>& blocks) {
  for (BlockId block : blocks) {
    if (block == NULL_BLOCK || --refs_[block] > 0) continue;
    place_[block] = free_.insert(keys_[block] ? free_.end() : free_.begin(), block);
  }
}

BlockId Pool::find(const Key& key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? NULL_BLOCK : found->second.front();
}

void Pool::publish(BlockId block, const Key& key, int length) {
  unpublish(block);
  keys_[block] = Keyed{key, length};
  index_[key].push_back(block);
}

void Pool::unpublish(BlockId block) {
  if (!keys_[block]) return;
  const auto found = index_.find(keys_[block]->key);
  auto& others = found->second;
  others.erase(std::find(others.begin(), others.end(), block));
  if (others.empty()) index_.erase(found);
  keys_[block].reset();
}

// --- requests --------------------------------------------------------------------------------

Cache::Cache(Config config) : config_(std::move(config)), pool_(config_.num_blocks) {}

Cache::Request& Cache::request(const std::string& name) {
  const auto found = requests_.find(name);
  if (found == requests_.end()) throw std::runtime_error("there is no request " + name);
  return found->second;
}

void Cache::submit(const std::string& name, const std::vector<int>& tokens, Identity identity) {
  Prefix prefix(std::move(identity), config_.hash_unit);
  prefix.extend(tokens);
  requests_.insert_or_assign(name, Request{std::move(prefix), static_cast<int>(tokens.size())});
}

void Cache::append(const std::string& name, const std::vector<int>& tokens) {
  request(name).prefix.extend(tokens);
}

std::map<std::string, Tables> Cache::tables() const {
  std::map<std::string, Tables> found;
  for (const auto& [name, r] : requests_) {
    if (!r.tables.empty()) found.emplace(name, r.tables);
  }
  return found;
}

// --- lookup ----------------------------------------------------------------------------------

Cache::Found Cache::find(int group, const Prefix& prefix, int limit) const {
  return config_.groups[group].recurrent ? find_state(group, prefix, limit)
                                         : find_full(group, prefix, limit);
}

// The longest run of keyed blocks, then the longest keyed boundary inside the next one.
Cache::Found Cache::find_full(int group, const Prefix& prefix, int limit) const {
  const auto& [_, size, eagle, __] = config_.groups[group];
  const int unit = config_.hash_unit;
  Found found;
  while (found.length + size <= limit) {
    const BlockId block = pool_.find({group, prefix.at(found.length + size)});
    if (block == NULL_BLOCK) break;
    found.blocks.push_back(block);
    found.length += size;
  }
  if (config_.fine()) {
    const int most = std::min(found.length + size - 1, limit);
    for (int boundary = align_down(most, unit); boundary > found.length; boundary -= unit) {
      if (const BlockId block = pool_.find({group, prefix.at(boundary)}); block != NULL_BLOCK) {
        found.blocks.push_back(block);
        found.length = boundary;
      }
    }
  }
  int length = found.length;
  if (eagle && length) length -= config_.fine() ? unit : size;
  length = align_down(length, config_.alignment());
  return {trimmed(found.blocks, length, size), length};
}

// The longest boundary at which a state is keyed: nulls, then its block.
Cache::Found Cache::find_state(int group, const Prefix& prefix, int limit) const {
  const int step = config_.alignment(), size = config_.groups[group].block_size;
  for (int length = align_down(limit, step); length > 0; length -= step) {
    if (const BlockId block = pool_.find({group, prefix.at(length)}); block != NULL_BLOCK) {
      Table blocks(ceil_div(length, size), NULL_BLOCK);
      blocks.back() = block;
      return {blocks, length};
    }
  }
  return {};
}

// Attention first; then states shorten the length until every group has one exactly there.
Hit Cache::lookup(const std::string& name) {
  const Prefix& prefix = request(name).prefix;
  const int limit = config_.caching ? prefix.size() - 1 : 0, groups = config_.groups.size();
  std::vector<Found> own;
  int length = INT_MAX, longest = 0;
  for (int g = 0; g < groups; ++g) {
    own.push_back(find(g, prefix, limit));
    longest = std::max(longest, own[g].length);
    if (!config_.groups[g].recurrent) length = std::min(length, own[g].length);
  }
  for (int agreed = -1; length != agreed;) {
    agreed = length;
    for (int g = 0; g < groups; ++g) {
      if (!config_.groups[g].recurrent) continue;
      own[g] = find_state(g, prefix, length);
      length = own[g].length;
    }
  }
  Hit hit{{}, length, longest > length ? longest : 0};
  for (int g = 0; g < groups; ++g) {
    hit.blocks.push_back(trimmed(own[g].blocks, length, config_.groups[g].block_size));
  }
  last_lookup_ = {name, hit};
  return hit;
}

// --- a grant, worked out before anything is taken ----------------------------------------------

// Only attention reserves slots for lookahead.
int Cache::slots(const Group& group, int end, int lookahead) const {
  if (!group.recurrent) end = std::min(end + lookahead, config_.max_model_len);
  return ceil_div(end, group.block_size);
}

Cache::Plan Cache::plan_first(const Hit& hit, int new_tokens, int lookahead) const {
  Plan plan{hit.num_tokens, hit.num_tokens + new_tokens, hit.blocks, {}, {}};
  for (size_t g = 0; g < config_.groups.size(); ++g) {
    const Group& group = config_.groups[g];
    Table& table = plan.tables[g];
    if (hit.num_tokens % group.block_size && !table.empty() && table.back() != NULL_BLOCK) {
      plan.privates.emplace_back(g, table.size() - 1, table.back());
      table.back() = FRESH;
    }
    const size_t needed = slots(group, plan.end, lookahead);
    if (needed > table.size()) table.resize(needed, group.recurrent ? NULL_BLOCK : FRESH);
    BlockId& last = table[(plan.end - 1) / group.block_size];
    if (group.recurrent && last == NULL_BLOCK) last = FRESH;
  }
  return plan;
}

Cache::Plan Cache::plan_next(const Request& r, int new_tokens, int lookahead) const {
  Plan plan{r.computed, r.computed + new_tokens, r.tables, {}, {}};
  for (size_t g = 0; g < config_.groups.size(); ++g) {
    const Group& group = config_.groups[g];
    Table& table = plan.tables[g];
    const size_t needed = slots(group, plan.end, lookahead);
    if (needed > table.size()) table.resize(needed, group.recurrent ? NULL_BLOCK : FRESH);
    const int slot = (plan.end - 1) / group.block_size;
    if (group.recurrent && table[slot] == NULL_BLOCK) {
      table[slot] = FRESH;
    } else if (group.recurrent && pool_.key(table[slot])) {
      plan.moves.emplace_back(g, slot);
    }
  }
  return plan;
}

// Whether the hit needs a state, or a copy of positions, that this step is still to write.
bool Cache::must_wait(const Plan& plan, int local) const {
  std::map<BlockId, int> lowest;  // the lowest position that is written in a block
  for (const auto& [source, destination] : copies_) lowest[destination] = 0;
  for (const auto& [name, chunk] : chunks_) {
    for (const auto& [block, position] : chunk.writes) {
      const auto [place, is_new] = lowest.emplace(block, position);
      if (!is_new) place->second = std::min(place->second, position);
    }
  }
  const auto waits = [&](BlockId block) {
    const auto found = lowest.find(block);
    return found != lowest.end() && found->second < local;
  };
  for (const auto& [g, slot, source] : plan.privates) {
    if (waits(source)) return true;
  }
  for (size_t g = 0; g < plan.tables.size(); ++g) {
    const Table& table = plan.tables[g];
    if (config_.groups[g].recurrent && std::any_of(table.begin(), table.end(), waits)) return true;
  }
  return false;
}

// --- a grant ---------------------------------------------------------------------------------

Grant Cache::allocate(const std::string& name, int new_tokens, int lookahead, bool delay_caching) {
  if (new_tokens == 0) throw Rejected("a grant of no tokens");
  Request& r = request(name);
  const bool first = r.tables.empty();
  Hit hit{Tables(config_.groups.size())};
  if (first && last_lookup_ && last_lookup_->first == name) hit = last_lookup_->second;
  if (!first) give_back(r);
  Plan plan = first ? plan_first(hit, new_tokens, lookahead) : plan_next(r, new_tokens, lookahead);

  std::vector<BlockId> hits;
  int fresh = plan.moves.size();
  std::vector<int> known;  // slots that each group had before, or hit
  for (size_t g = 0; g < plan.tables.size(); ++g) {
    known.push_back(first ? hit.blocks[g].size() : r.tables[g].size());
    for (BlockId block : plan.tables[g]) {
      if (block == FRESH) ++fresh;
      if (first && block > NULL_BLOCK) hits.push_back(block);
    }
  }
  for (const auto& [g, slot, source] : plan.privates) hits.push_back(source);

  // A hit that nobody holds is in the free list: taking hold of it leaves one block less.
  const std::set<BlockId> different(hits.begin(), hits.end());
  const int unheld = std::count_if(different.begin(), different.end(),
                                   [&](BlockId block) { return pool_.holders(block) == 0; });
  if (fresh + unheld > pool_.num_free() || (first && must_wait(plan, hit.num_tokens))) {
    const Tables none(config_.groups.size());
    return {false, none, first ? none : r.tables, {}};
  }
  if (first) r.computed = r.registered = hit.num_tokens;
  const int start = plan.start, end = plan.end;
  Grant grant = give(r, std::move(plan), hits, known);
  chunks_[name] = {end, written(r, start, end)};
  if (!delay_caching) register_blocks(r, start, end);
  return grant;
}

// Hold the hits of all groups, then take blocks, then queue the copies.
Grant Cache::give(Request& r, Plan plan, const std::vector<BlockId>& hits,
                  const std::vector<int>& known) {
  Grant grant{true, Tables(plan.tables.size()), {}, {}};
  for (BlockId block : hits) pool_.hold(block);
  for (size_t g = 0; g < plan.tables.size(); ++g) {
    std::map<int, BlockId> shared;
    for (const auto& [group, slot, source] : plan.privates) {
      if (group == static_cast<int>(g)) shared[slot] = source;
    }
    for (int slot = 0; slot < static_cast<int>(plan.tables[g].size()); ++slot) {
      BlockId& block = plan.tables[g][slot];
      if (block == NULL_BLOCK && slot >= known[g]) grant.new_blocks[g].push_back(NULL_BLOCK);
      if (block != FRESH) continue;
      block = take(g, shared.count(slot));
      grant.new_blocks[g].push_back(block);
      if (!shared.count(slot)) continue;
      pool_.hold(block);  // both ends of a copy stay held until it has run
      grant.copies.emplace_back(shared[slot], block);
    }
  }
  for (const auto& [g, slot] : plan.moves) {
    grant.copies.push_back(move_entry(plan.tables[g][slot], g));
  }
  copies_.insert(copies_.end(), grant.copies.begin(), grant.copies.end());
  grant.table = r.tables = std::move(plan.tables);
  return grant;
}

BlockId Cache::take(int group, bool copied) {
  const BlockId block = pool_.take();
  to_zero_.erase(std::remove(to_zero_.begin(), to_zero_.end(), block), to_zero_.end());
  if (config_.groups[group].zeroed && !copied) to_zero_.push_back(block);
  return block;
}

// An owner writes over its keyed state: a copy of it takes the key over.
Copy Cache::move_entry(BlockId own, int group) {
  const Pool::Keyed entry = *pool_.key(own);
  const BlockId moved = take(group, true);
  pool_.hold(own);
  pool_.unpublish(own);
  pool_.publish(moved, entry.key, entry.length);
  return {own, moved};
}

std::vector<std::pair<BlockId, int>> Cache::written(const Request& r, int start, int end) const {
  std::vector<std::pair<BlockId, int>> found;
  for (size_t g = 0; g < r.tables.size(); ++g) {
    const int size = config_.groups[g].block_size;
    if (config_.groups[g].recurrent) {
      found.emplace_back(r.tables[g][(end - 1) / size], 0);
      continue;
    }
    for (int slot = start / size; slot < ceil_div(end, size); ++slot) {
      found.emplace_back(r.tables[g][slot], std::max(start, slot * size));
    }
  }
  return found;
}

// Key what the known tokens up to `end` complete. There are states at a chunk's ends only.
void Cache::register_blocks(Request& r, int start, int end) {
  if (!config_.caching) return;
  const int done = r.registered;
  end = std::min(end, r.prefix.size());
  const int tail = config_.fine() ? align_down(r.num_prompt_tokens, config_.hash_unit) : 0;
  for (size_t g = 0; g < config_.groups.size(); ++g) {
    const int size = config_.groups[g].block_size;
    std::vector<int> lengths;
    if (config_.groups[g].recurrent) {
      if (start % size == 0) lengths.push_back(start);
      if (end % size == 0 || end == tail) lengths.push_back(end);
    } else {
      for (int at = (done / size + 1) * size; at <= end; at += size) lengths.push_back(at);
      if (tail % size && end / size == tail / size) lengths.push_back(tail);
    }
    for (int length : lengths) {
      if (length <= done || length > end) continue;
      pool_.publish(r.tables[g][(length - 1) / size], {g, r.prefix.at(length)}, length);
    }
  }
  r.registered = std::max(done, end);
}

// States before the one that the next chunk starts from are not needed any more.
void Cache::give_back(Request& r) {
  for (size_t g = 0; g < r.tables.size(); ++g) {
    if (!config_.groups[g].recurrent || r.computed == 0) continue;
    std::vector<BlockId> gone;
    for (int slot = (r.computed - 1) / config_.groups[g].block_size - 1; slot >= 0; --slot) {
      gone.push_back(std::exchange(r.tables[g][slot], NULL_BLOCK));
    }
    release(gone, r.last_step);
  }
}

// --- the step --------------------------------------------------------------------------------

void Cache::begin_step() { chunks_.clear(); }

std::vector<BlockId> Cache::take_zeroing() {
  std::vector<BlockId> held;
  for (BlockId block : std::exchange(to_zero_, {})) {
    if (pool_.holders(block)) held.push_back(block);
  }
  return held;
}

std::pair<std::vector<Copy>, std::vector<BlockId>> Cache::take_copies() {
  std::vector<BlockId> ends;
  for (const auto& [source, destination] : copies_) ends.insert(ends.end(), {source, destination});
  if (!ends.empty()) retained_.push_back({step_ + 1, ends});
  return {std::exchange(copies_, {}), ends};
}

int Cache::end_step() {
  ++step_;
  for (const auto& [name, chunk] : chunks_) {
    Request& r = request(name);
    r.computed = std::min(chunk.end, r.prefix.size());
    r.last_step = step_;
  }
  chunks_.clear();
  return step_;
}

void Cache::process() {
  ++processed_;
  std::vector<Later> waiting;
  for (Later& later : std::exchange(fenced_, {})) {
    if (later.fence <= processed_) {
      pool_.drop(later.blocks);
    } else {
      waiting.push_back(std::move(later));
    }
  }
  fenced_ = std::move(waiting);
}

std::vector<BlockId> Cache::release_retained(int fence) {
  std::vector<BlockId> ends;
  std::vector<Later> waiting;
  for (Later& later : std::exchange(retained_, {})) {
    if (later.fence > fence) {
      waiting.push_back(std::move(later));
    } else {
      ends.insert(ends.end(), later.blocks.begin(), later.blocks.end());
    }
  }
  retained_ = std::move(waiting);
  std::reverse(ends.begin(), ends.end());
  const bool at_once = !config_.deferral || fence <= processed_;
  release(ends, fence);
  return at_once ? ends : std::vector<BlockId>{};
}

// Free blocks in this order; behind the fence where a step in flight may still touch them.
void Cache::release(std::vector<BlockId> blocks, int fence) {
  if (!blocks.empty() && config_.deferral && fence > processed_) {
    fenced_.push_back({fence, std::move(blocks)});
  } else {
    pool_.drop(blocks);
  }
}

// --- how requests leave ----------------------------------------------------------------------

void Cache::finish(const std::string& name) {
  take_back(request(name));
  requests_.erase(name);
}

void Cache::preempt(const std::string& name) {
  Request& r = request(name);
  take_back(r);
  r = Request{r.prefix, r.num_prompt_tokens, {}, 0, 0, r.last_step};
}

// The chunk granted in this step will never run: what it promised must not be found.
void Cache::withdraw(const std::string& name) {
  Request& r = request(name);
  chunks_.erase(name);
  for (const Table& table : r.tables) {
    for (BlockId block : table) {
      const auto& entry = pool_.key(block);
      if (entry && entry->length > r.computed) pool_.unpublish(block);
    }
  }
  preempt(name);
}

// Tails first: of a prefix that is taken block by block, the start is of use the longest.
void Cache::take_back(Request& r) {
  std::vector<BlockId> blocks;
  for (const Table& table : r.tables) blocks.insert(blocks.end(), table.rbegin(), table.rend());
  forget_zeroing(blocks);
  release(blocks, r.last_step);
}

// Blocks leave their only holder: the next step has no business with them.
void Cache::forget_zeroing(const std::vector<BlockId>& gone) {
  const auto alone = [&](BlockId b) { return pool_.holders(b) == 1 && contains(gone, b); };
  to_zero_.erase(std::remove_if(to_zero_.begin(), to_zero_.end(), alone), to_zero_.end());
}

std::vector<BlockId> Cache::detach(const std::string& name) {
  Request& r = request(name);
  std::vector<BlockId> blocks;
  for (const Table& table : r.tables) {
    std::copy_if(table.begin(), table.end(), std::back_inserter(blocks),
                 [](BlockId block) { return block != NULL_BLOCK; });
  }
  forget_zeroing(blocks);
  Later& held = detached_[name];
  held.blocks.insert(held.blocks.end(), blocks.begin(), blocks.end());
  held.fence = std::max(held.fence, r.last_step);
  r = Request{r.prefix, r.num_prompt_tokens, {}, 0, 0, r.last_step};
  return blocks;
}

void Cache::free_detached(const std::string& name) {
  auto held = detached_.extract(name);
  if (held.empty()) throw std::runtime_error("nothing was detached from " + name);
  std::reverse(held.mapped().blocks.begin(), held.mapped().blocks.end());
  release(held.mapped().blocks, held.mapped().fence);
}

// --- the prefix cache, and the chunk rule ------------------------------------------------------

void Cache::evict(const std::vector<BlockId>& blocks) {
  for (BlockId block : blocks) {
    if (block >= 0 && block < pool_.num_blocks()) pool_.unpublish(block);
  }
}

bool Cache::reset() {
  if (pool_.num_free() < pool_.num_blocks() - 1) return false;
  for (BlockId block = 1; block < pool_.num_blocks(); ++block) pool_.unpublish(block);
  return true;
}

int chunk_length(const ChunkQuestion& asked) {
  const auto& [start, wanted, prompt, total, size, unit, budget, cap, boundary, fine, eagle] = asked;
  const int free_from = std::max(prompt, total - 1);  // nothing is clipped from here on
  if (start >= free_from) return wanted;
  int end = start + wanted;
  if (end < free_from) {
    const int aligned = align_down(end, size);
    const bool fits_no_step = size > budget || (cap > 0 && cap < size);
    if (aligned > start || !fits_no_step) end = std::max(aligned, start);
  }
  const int whole = align_down(total, size);
  const int cacheable = eagle ? std::max(whole - size, 0) : whole;
  const int tail = align_down(prompt, unit);
  std::vector<int> stops = {cacheable, align_down(boundary, size)};
  if (start % size) stops.push_back(align_down(start, size) + size);
  if (fine && cacheable < tail && tail < prompt) stops.push_back(tail);
  int found = end;
  for (int stop : stops) {
    if (start < stop && stop < end) found = std::min(found, stop);
  }
  return found - start;
}
