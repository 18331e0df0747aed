// A KV-cache manager: paged, prefix-sharing, for hybrid models (full attention and recurrent state).
//
// A *block* is a fixed number of token positions of one group of layers. Requests that start alike
// share blocks; a block that nobody holds stays findable until it is taken for something else. The
// public methods of `Cache` are the events of kvspec/1 in C++; `main.cpp` speaks the protocol.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "digest.hpp"

using BlockId = int;
using Table = std::vector<BlockId>;  // of one group
using Tables = std::vector<Table>;   // one a group
using Copy = std::pair<BlockId, BlockId>;
using Key = std::pair<int, Digest>;  // (group, digest of the prefix)

constexpr BlockId NULL_BLOCK = 0;  // stands where no block is needed
constexpr BlockId FRESH = -1;      // stands in a planned table where a block has to be taken

// An event that the rules call an error; it changes nothing.
struct Rejected : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Group {
  bool recurrent = false;  // a block holds one state, not one entry a position
  int block_size = 0;      // tokens
  bool eagle = false;      // feeds a draft model: the last matched unit is computed again
  bool zeroed = false;     // its blocks are zeroed before their first use
};

struct Config {
  int num_blocks = 0, hash_unit = 0, max_model_len = 0;  // blocks with the null block; tokens
  std::vector<Group> groups;
  bool caching = true;
  bool deferral = false;  // what a step in flight may touch is freed when it was processed

  bool fine() const;      // whether a hit may end inside a block
  int alignment() const;  // every hit length is a multiple of it
};

struct Hit {
  Tables blocks;
  int num_tokens = 0;
  int shared_prefix_boundary = 0;
};

struct Grant {
  bool granted = false;
  Tables new_blocks, table;
  std::vector<Copy> copies;
};

// Reference counts, the free list and the index of the prefix cache.
class Pool {
 public:
  struct Keyed {
    Key key;
    int length;  // tokens of the prefix it names
  };

  explicit Pool(int num_blocks);

  int num_free() const { return static_cast<int>(free_.size()); }
  int holders(BlockId block) const { return refs_[block]; }
  const std::list<BlockId>& free_list() const { return free_; }
  const std::optional<Keyed>& key(BlockId block) const { return keys_[block]; }
  int num_blocks() const { return static_cast<int>(refs_.size()); }

  BlockId take();                            // the next free block; it has one holder and no key
  void hold(BlockId block);                  // one holder more
  void drop(const std::vector<BlockId>& blocks);  // one holder less each, in this order
  BlockId find(const Key& key) const;        // the block keyed longest, or NULL_BLOCK
  void publish(BlockId block, const Key& key, int length);
  void unpublish(BlockId block);

 private:
  std::vector<int> refs_;
  std::list<BlockId> free_;  // taken from the front
  std::vector<std::list<BlockId>::iterator> place_;
  std::vector<std::optional<Keyed>> keys_;
  std::map<Key, std::vector<BlockId>> index_;
};

class Cache {
 public:
  explicit Cache(Config config);

  void submit(const std::string& name, const std::vector<int>& tokens, Identity identity);
  void append(const std::string& name, const std::vector<int>& tokens);
  Hit lookup(const std::string& name);
  Grant allocate(const std::string& name, int new_tokens, int lookahead, bool delay_caching);

  void begin_step();
  std::vector<BlockId> take_zeroing();
  std::pair<std::vector<Copy>, std::vector<BlockId>> take_copies();  // and what stays held
  int end_step();
  void process();
  std::vector<BlockId> release_retained(int fence);

  void finish(const std::string& name);
  void preempt(const std::string& name);
  void withdraw(const std::string& name);
  std::vector<BlockId> detach(const std::string& name);
  void free_detached(const std::string& name);

  void evict(const std::vector<BlockId>& blocks);
  bool reset();
  void forget_lookup() { last_lookup_.reset(); }

  const Pool& pool() const { return pool_; }
  std::map<std::string, Tables> tables() const;

 private:
  struct Request {
    Prefix prefix;
    int num_prompt_tokens;
    Tables tables = {};   // empty while it waits
    int computed = 0;     // tokens in the cache, those of dispatched steps included
    int registered = 0;   // tokens that were looked at for keying
    int last_step = 0;
  };

  struct Found {  // what one group has of a prefix
    Table blocks;
    int length = 0;
  };

  struct Plan {  // a grant before anything is taken for it
    int start = 0, end = 0;
    Tables tables;
    std::vector<std::tuple<int, int, BlockId>> privates;  // (group, slot, shared block)
    std::vector<std::pair<int, int>> moves;  // (group, slot) of a keyed state to be overwritten
  };

  struct Chunk {  // what was granted in the open step: its end, and what it writes from where
    int end;
    std::vector<std::pair<BlockId, int>> writes;
  };

  struct Later {  // blocks that wait for a step
    int fence;
    std::vector<BlockId> blocks;
  };

  Request& request(const std::string& name);
  Found find(int group, const Prefix& prefix, int limit) const;
  Found find_full(int group, const Prefix& prefix, int limit) const;
  Found find_state(int group, const Prefix& prefix, int limit) const;

  int slots(const Group& group, int end, int lookahead) const;
  Plan plan_first(const Hit& hit, int new_tokens, int lookahead) const;
  Plan plan_next(const Request& r, int new_tokens, int lookahead) const;
  bool must_wait(const Plan& plan, int local) const;
  Grant give(Request& r, Plan plan, const std::vector<BlockId>& hits, const std::vector<int>& known);
  BlockId take(int group, bool copied);
  Copy move_entry(BlockId own, int group);
  std::vector<std::pair<BlockId, int>> written(const Request& r, int start, int end) const;
  void register_blocks(Request& r, int start, int end);
  void give_back(Request& r);
  void take_back(Request& r);
  void forget_zeroing(const std::vector<BlockId>& gone);
  void release(std::vector<BlockId> blocks, int fence);

  Config config_;
  Pool pool_;
  std::map<std::string, Request> requests_;
  std::map<std::string, Later> detached_;
  std::optional<std::pair<std::string, Hit>> last_lookup_;
  std::map<std::string, Chunk> chunks_;
  std::vector<BlockId> to_zero_;
  std::vector<Copy> copies_;
  std::vector<Later> retained_, fenced_;
  int step_ = 0, processed_ = 0;
};

// The scheduler's chunk rule: how many tokens a prefill chunk computes. All in tokens.
struct ChunkQuestion {
  int start, wanted, num_prompt_tokens, num_tokens, block_size, hash_unit, budget;
  int cap, boundary;
  bool fine, eagle;
};
int chunk_length(const ChunkQuestion& asked);
