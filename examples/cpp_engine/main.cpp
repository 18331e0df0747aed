// An engine behind kvspec/1: one JSON object a line on standard input, one line in answer to each.
//
//   kvspec check --target 'cmd:./engine'
#include <functional>
#include <iostream>
#include <memory>

#include "cache.hpp"
#include "json.hpp"

namespace {

using Object = Json::Object;

// An event, or a configuration, that this engine cannot do; nothing changed.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Json texts(const std::vector<std::string>& words) { return Json::list(words); }

const Object STARTED = {
    {"protocol", "kvspec/1"},
    {"name", "cpp_engine"},
    {"language", "c++"},
    {"version", "1.0"},
    {"capabilities",
     Object{{"shows", texts({"refcounts", "free_list", "keys", "pins", "tables"})},
            // there is no connector, and nothing is known of images
            {"lacks", texts({"media", "uniform_connector", "diverging_connector", "external_tokens",
                             "lookup_for_connector", "truncate", "take_offloads", "offload_read",
                             "offload_done", "load_external"})}}}};

// --- reading ---------------------------------------------------------------------------------

std::vector<int> numbers(const Json& list) {
  std::vector<int> found;
  for (const Json& item : list.items()) found.push_back(item.to_count());
  return found;
}

Config read_config(const Json& event) {
  if (const Json* kind = event.find("connector"); kind && kind->text() != "none") {
    throw Unsupported("there is no connector");
  }
  Config config;
  config.num_blocks = event.count("num_blocks");
  config.hash_unit = event.count("hash_unit");
  config.max_model_len = event.count("max_model_len");
  const Json* caching = event.find("caching");
  config.caching = !caching || caching->truth();
  config.deferral = event.flag("deferral");
  for (const Json& group : event.at("groups").items()) {
    const std::string& kind = group.at("kind").text();
    if (kind != "full" && kind != "mamba_align") throw Unsupported("a group of kind " + kind);
    config.groups.push_back({kind == "mamba_align", group.count("block_size"), group.flag("eagle"),
                             group.flag("zeroed")});
  }
  if (config.num_blocks < 2 || config.hash_unit < 1 || config.groups.empty()) {
    throw std::runtime_error("configure: no cache can be made of that");
  }
  return config;
}

Identity read_identity(const Json& event) {
  if (const Json* media = event.find("media"); media && !media->items().empty()) {
    throw Unsupported("media");
  }
  Identity identity;
  if (const Json* salt = event.find("salt")) identity.salt = salt->text();
  if (const Json* adapter = event.find("adapter")) {
    identity.adapter = {adapter->at("name").text(), adapter->count("version", 0)};
  }
  return identity;
}

ChunkQuestion read_chunk(const Json& e) {
  return {e.count("start"),      e.count("wanted"),       e.count("num_prompt_tokens"),
          e.count("num_tokens"), e.count("block_size"),   e.count("hash_unit"),
          e.count("budget"),     e.count("cap", 0),       e.count("boundary", 0),
          e.flag("fine"),        e.flag("eagle")};
}

// --- writing ---------------------------------------------------------------------------------

Json blocks(const std::vector<BlockId>& ids) { return Json::list(ids); }

Json lists(const Tables& tables) {
  Json::List found;
  for (const Table& table : tables) found.push_back(blocks(table));
  return found;
}

Json pairs(const std::vector<Copy>& copies) {
  Json::List found;
  for (const auto& [source, destination] : copies) found.push_back(blocks({source, destination}));
  return found;
}

std::string hex(const Digest& digest) {
  static const char* digits = "0123456789abcdef";
  std::string found;
  for (unsigned char byte : digest) (found += digits[byte / 16]) += digits[byte % 16];
  return found;
}

Object snapshot(const Cache& cache) {
  const Pool& pool = cache.pool();
  Object refcounts, keys, tables;
  for (BlockId block = 1; block < pool.num_blocks(); ++block) {
    const std::string id = std::to_string(block);
    if (pool.holders(block)) refcounts[id] = pool.holders(block);
    if (const auto& entry = pool.key(block)) {
      keys[id] = Json::List{Json::List{entry->key.first, hex(entry->key.second)}};
    }
  }
  for (const auto& [name, table] : cache.tables()) tables[name] = lists(table);
  const std::vector<BlockId> free_list(pool.free_list().begin(), pool.free_list().end());
  return {{"refcounts", refcounts}, {"free_list", blocks(free_list)}, {"keys", keys},
          {"pins", Json::List{}},   {"tables", tables}};
}

// --- events ----------------------------------------------------------------------------------

std::string name_of(const Json& event) { return event.at("request").text(); }

Object allocate(Cache& cache, const Json& event) {
  if (event.count("num_external_tokens", 0)) throw Unsupported("external tokens");
  const Grant grant =
      cache.allocate(name_of(event), event.count("num_new_tokens"),
                     event.count("num_lookahead_tokens", 0), event.flag("delay_caching"));
  return {{"granted", grant.granted},
          {"new_blocks", lists(grant.new_blocks)},
          {"table", lists(grant.table)},
          {"copies", pairs(grant.copies)}};
}

Object lookup(Cache& cache, const Json& event) {
  const Hit hit = cache.lookup(name_of(event));
  return {{"blocks", lists(hit.blocks)},
          {"num_tokens", hit.num_tokens},
          {"shared_prefix_boundary", hit.shared_prefix_boundary}};
}

using Answer = std::function<Object(Cache&, const Json&)>;

// An event that has nothing to say.
template <class Do>
Answer done(Do act) {
  return [act](Cache& cache, const Json& event) -> Object { return act(cache, event), Object{}; };
}

const std::map<std::string, Answer> EVENTS = {
    {"submit", done([](Cache& c, const Json& e) {
       c.submit(name_of(e), numbers(e.at("tokens")), read_identity(e));
     })},
    {"append", done([](Cache& c, const Json& e) { c.append(name_of(e), numbers(e.at("tokens"))); })},
    {"lookup", lookup},
    {"allocate", allocate},
    {"begin_step", done([](Cache& c, const Json&) { c.begin_step(); })},
    {"take_zeroing",
     [](Cache& c, const Json&) -> Object { return {{"blocks", blocks(c.take_zeroing())}}; }},
    {"take_copies",
     [](Cache& c, const Json&) -> Object {
       const auto [copies, retained] = c.take_copies();
       return {{"copies", pairs(copies)}, {"retained", blocks(retained)}};
     }},
    {"end_step", [](Cache& c, const Json&) -> Object { return {{"step", c.end_step()}}; }},
    {"execute", done([](Cache&, const Json&) {})},  // the worker's business
    {"process", done([](Cache& c, const Json&) { c.process(); })},
    {"release_retained",
     [](Cache& c, const Json& e) -> Object {
       return {{"blocks", blocks(c.release_retained(e.count("fence")))}};
     }},
    {"finish", done([](Cache& c, const Json& e) { c.finish(name_of(e)); })},
    {"abort", done([](Cache& c, const Json& e) { c.finish(name_of(e)); })},
    {"preempt", done([](Cache& c, const Json& e) { c.preempt(name_of(e)); })},
    {"withdraw", done([](Cache& c, const Json& e) { c.withdraw(name_of(e)); })},
    {"detach",
     [](Cache& c, const Json& e) -> Object { return {{"blocks", blocks(c.detach(name_of(e)))}}; }},
    {"free_detached", done([](Cache& c, const Json& e) { c.free_detached(name_of(e)); })},
    {"evict", done([](Cache& c, const Json& e) { c.evict(numbers(e.at("blocks"))); })},
    {"reset", [](Cache& c, const Json&) -> Object { return {{"done", c.reset()}}; }},
    {"chunk",
     [](Cache&, const Json& e) -> Object { return {{"num_tokens", chunk_length(read_chunk(e))}}; }},
    {"snapshot", [](Cache& c, const Json&) { return snapshot(c); }},
};

// One conversation: what it is asked, it answers with one object.
class Engine {
 public:
  bool stopped = false;

  Object answer(const std::string& line) {
    try {
      const Json event = Json::parse(line);
      return {{"result", result(event.at("event").text(), event)}};
    } catch (const Unsupported& why) {
      return {{"unsupported", why.what()}};
    } catch (const Rejected& why) {
      return {{"rejected", why.what()}};
    } catch (const std::exception& why) {
      return {{"error", why.what()}};
    }
  }

 private:
  std::unique_ptr<Cache> cache_;

  Object result(const std::string& name, const Json& event) {
    if (name == "start") return STARTED;
    if (name == "stop") return stopped = true, Object{};
    if (name == "configure") {
      cache_ = std::make_unique<Cache>(read_config(event));
      return {};
    }
    const auto found = EVENTS.find(name);
    if (found == EVENTS.end()) throw Unsupported("there is no event " + name);
    if (!cache_) throw std::runtime_error("expected configure before " + name);
    Object answered;
    try {
      answered = found->second(*cache_, event);
    } catch (...) {
      cache_->forget_lookup();
      throw;
    }
    // a hit is used by the allocate directly behind its lookup, or not at all
    if (name != "lookup" && name != "snapshot") cache_->forget_lookup();
    return answered;
  }
};

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  Engine engine;
  for (std::string line; !engine.stopped && std::getline(std::cin, line);) {
    std::cout << Json(engine.answer(line)).dump() << std::endl;
  }
}
