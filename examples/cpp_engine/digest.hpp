// What a prefix is called: D(k) = SHA-256(D(k-1), the tokens of unit k, what else decides them).
//
// Every value is encoded with its kind and its length, so that two different prefixes never give
// the same bytes: a salt "a" is not an adapter "a".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using Digest = std::string;  // 32 bytes

// SHA-256, as FIPS 180-4 defines it.
inline Digest sha256(std::string data) {
  static const auto k = [] {  // the first 32 bits of the fractions of the primes' cube roots
    std::array<uint32_t, 64> found{};
    size_t filled = 0;
    for (uint64_t prime = 2; filled < 64; ++prime) {
      bool is_prime = true;
      for (uint64_t d = 2; d * d <= prime; ++d) is_prime &= prime % d != 0;
      if (!is_prime) continue;
      // the largest r with r^3 <= prime * 2^96, bit by bit; 128 bits hold r^3
      unsigned __int128 wanted = static_cast<unsigned __int128>(prime) << 96, root = 0;
      for (int bit = 35; bit >= 0; --bit) {
        const unsigned __int128 next = root | (static_cast<unsigned __int128>(1) << bit);
        if (next * next * next <= wanted) root = next;
      }
      found[filled++] = static_cast<uint32_t>(root);
    }
    return found;
  }();
  std::array<uint32_t, 8> h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const auto turn = [](uint32_t x, int by) { return (x >> by) | (x << (32 - by)); };
  const uint64_t bits = 8 * static_cast<uint64_t>(data.size());
  data += static_cast<char>(0x80);
  while (data.size() % 64 != 56) data += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) data += static_cast<char>(bits >> shift);
  for (size_t start = 0; start < data.size(); start += 64) {
    std::array<uint32_t, 64> w{};
    for (size_t i = 0; i < 64; ++i) w[i / 4] = (w[i / 4] << 8) | static_cast<uint8_t>(data[start + i]);
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const uint32_t s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, last] = h;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
      const uint32_t t1 = last + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i];
      const uint32_t s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
      const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      last = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<uint32_t, 8> more = {a, b, c, d, e, f, g, last};
    for (size_t i = 0; i < 8; ++i) h[i] += more[i];
  }
  Digest digest;
  for (uint32_t word : h) {
    for (int shift = 24; shift >= 0; shift -= 8) digest += static_cast<char>(word >> shift);
  }
  return digest;
}

inline std::string little_endian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// What besides its tokens decides what a prefix computes to.
struct Identity {
  std::optional<std::string> salt;
  std::optional<std::pair<std::string, int>> adapter;  // its name, and the version of its weights

  std::string encode(bool first_unit) const {
    std::string out;
    if (salt && first_unit) out += text('S', *salt);
    if (adapter) out += text('A', adapter->first) + little_endian(adapter->second, 8);
    return out;
  }

 private:
  static std::string text(char kind, const std::string& value) {
    return kind + little_endian(value.size(), 8) + value;
  }
};

// The tokens of a request, with the digest of each complete unit.
class Prefix {
 public:
  Prefix(Identity identity, int hash_unit) : identity_(std::move(identity)), unit_(hash_unit) {}

  void extend(const std::vector<int>& tokens) {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    while ((digests_.size()) * unit_ <= tokens_.size()) {
      const size_t start = (digests_.size() - 1) * unit_;
      std::string body = digests_.back() + little_endian(unit_, 8);
      for (size_t i = start; i < start + unit_; ++i) body += little_endian(tokens_[i], 4);
      digests_.push_back(sha256(body + identity_.encode(start == 0)));
    }
  }

  int size() const { return static_cast<int>(tokens_.size()); }

  // The digest of the first `length` tokens, a multiple of the hash unit.
  const Digest& at(int length) const { return digests_[length / unit_]; }

 private:
  Identity identity_;
  size_t unit_;
  std::vector<int> tokens_;
  std::vector<Digest> digests_ = {sha256("kvspec/1")};
};
