// As much of JSON as kvspec/1 needs: objects, lists, texts, whole numbers, true, false and null.
//
// `Json::parse` reads one value strictly and throws `std::runtime_error` for anything else: a
// fraction, a key given twice, text behind the value, nesting deeper than any event has.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

class Json {
 public:
  using List = std::vector<Json>;
  using Object = std::map<std::string, Json>;

  Json() = default;  // null
  Json(bool truth) : value_(truth) {}
  Json(int number) : value_(static_cast<int64_t>(number)) {}
  Json(int64_t number) : value_(number) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  Json(List list) : value_(std::move(list)) {}
  Json(Object object) : value_(std::move(object)) {}

  // A list of whatever can be made a value of.
  template <class Item>
  static Json list(const std::vector<Item>& items) {
    return Json(List(items.begin(), items.end()));
  }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool truth() const { return as<bool>("true or false"); }
  int64_t number() const { return as<int64_t>("a whole number"); }
  const std::string& text() const { return as<std::string>("a text"); }
  const List& items() const { return as<List>("a list"); }
  const Object& object() const { return as<Object>("an object"); }

  // A field of an object, which has to be there.
  const Json& at(const std::string& name) const {
    const Json* found = find(name);
    if (!found) throw std::runtime_error("missing field " + name);
    return *found;
  }

  // A field of an object, or null where it was left out.
  const Json* find(const std::string& name) const {
    auto found = object().find(name);
    return found == object().end() || found->second.is_null() ? nullptr : &found->second;
  }

  // A whole number from 0 up to what an int holds: every count and token id is one.
  int count(const std::string& name) const { return at(name).to_count(); }
  int count(const std::string& name, int otherwise) const {
    return find(name) ? count(name) : otherwise;
  }
  bool flag(const std::string& name) const { return find(name) && at(name).truth(); }

  int to_count() const {
    if (number() < 0 || number() > INT32_MAX) {
      throw std::runtime_error("expected a number from 0 to 2147483647");
    }
    return static_cast<int>(number());
  }

  static Json parse(const std::string& text) {
    Reader reader{text};
    Json value = reader.value(0);
    if (reader.skip() != '\0' || reader.at != text.size()) reader.fail("the end of the line");
    return value;
  }

  std::string dump() const {
    std::string out;
    write(out);
    return out;
  }

 private:
  std::variant<std::monostate, bool, int64_t, std::string, List, Object> value_;

  template <class Kind>
  const Kind& as(const char* expected) const {
    if (!std::holds_alternative<Kind>(value_)) {
      throw std::runtime_error(std::string("expected ") + expected);
    }
    return std::get<Kind>(value_);
  }

  struct Reader {
    const std::string& text;
    size_t at = 0;

    [[noreturn]] void fail(const std::string& expected) const {
      throw std::runtime_error("expected " + expected + " at byte " + std::to_string(at));
    }

    char peek() const { return at < text.size() ? text[at] : '\0'; }

    char skip() {
      while (peek() == ' ' || peek() == '\t' || peek() == '\r' || peek() == '\n') ++at;
      return peek();
    }

    void expect(char sign) {
      if (skip() != sign) fail(std::string(1, sign));
      ++at;
    }

    bool word(const std::string& expected) {
      if (text.compare(at, expected.size(), expected) != 0) return false;
      at += expected.size();
      return true;
    }

    Json value(int depth) {
      if (depth > 16) fail("flat fields");
      switch (skip()) {
        case '{': return object(depth);
        case '[': return list(depth);
        case '"': return Json(string());
        case 't': if (word("true")) return Json(true); break;
        case 'f': if (word("false")) return Json(false); break;
        case 'n': if (word("null")) return Json(); break;
        default: if (peek() == '-' || is_digit()) return Json(number());
      }
      fail("a value");
    }

    Json object(int depth) {
      Object found;
      expect('{');
      if (skip() == '}') return ++at, Json(found);
      for (;;) {
        skip();
        std::string name = string();
        expect(':');
        if (!found.emplace(name, value(depth + 1)).second) fail("each key once");
        if (skip() != ',') break;
        ++at;
      }
      expect('}');
      return Json(std::move(found));
    }

    Json list(int depth) {
      List found;
      expect('[');
      if (skip() == ']') return ++at, Json(found);
      for (;;) {
        found.push_back(value(depth + 1));
        if (skip() != ',') break;
        ++at;
      }
      expect(']');
      return Json(std::move(found));
    }

    bool is_digit() const { return peek() >= '0' && peek() <= '9'; }

    int64_t number() {
      const bool negative = word("-");
      if (!is_digit()) fail("a digit");
      int64_t found = 0;
      for (int digits = 0; is_digit(); ++at, ++digits) {
        if (digits == 18) fail("a smaller number");
        found = found * 10 + (peek() - '0');
      }
      if (peek() == '.' || peek() == 'e' || peek() == 'E') fail("a whole number");
      return negative ? -found : found;
    }

    std::string string() {
      std::string found;
      expect('"');
      while (peek() != '"') {
        if (at >= text.size() || static_cast<unsigned char>(peek()) < ' ') fail("a text's end");
        if (peek() == '\\') {
          ++at;
          escape(found);
        } else {
          found += text[at++];
        }
      }
      ++at;
      return found;
    }

    void escape(std::string& out) {
      static const std::string signs = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
      const char sign = peek();
      ++at;
      if (sign == 'u') {
        uint32_t code = hex4();
        if (code >= 0xD800 && code < 0xDC00 && word("\\u")) {
          code = 0x10000 + ((code - 0xD800) << 10) + (hex4() - 0xDC00);
        }
        append_utf8(out, code);
      } else if (size_t found = signs.find(sign); found != std::string::npos && sign) {
        out += meant[found];
      } else {
        fail("an escape");
      }
    }

    uint32_t hex4() {
      static const std::string digits = "0123456789abcdef0123456789ABCDEF";
      uint32_t code = 0;
      for (int i = 0; i < 4; ++i, ++at) {
        const size_t digit = at < text.size() ? digits.find(text[at]) : std::string::npos;
        if (digit == std::string::npos) fail("four hexadecimal digits");
        code = code * 16 + digit % 16;
      }
      return code;
    }

    static void append_utf8(std::string& out, uint32_t code) {
      if (code < 0x80) {
        out += static_cast<char>(code);
        return;
      }
      const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
      const int lead[] = {0, 0xC0, 0xE0, 0xF0};
      out += static_cast<char>(lead[more] | (code >> (6 * more)));
      for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F));
    }
  };

  void write(std::string& out) const {
    if (is_null()) {
      out += "null";
    } else if (auto truth = std::get_if<bool>(&value_)) {
      out += *truth ? "true" : "false";
    } else if (auto number = std::get_if<int64_t>(&value_)) {
      out += std::to_string(*number);
    } else if (auto text = std::get_if<std::string>(&value_)) {
      write_text(out, *text);
    } else if (auto list = std::get_if<List>(&value_)) {
      out += '[';
      for (size_t i = 0; i < list->size(); ++i) {
        if (i) out += ',';
        (*list)[i].write(out);
      }
      out += ']';
    } else {
      out += '{';
      for (const auto& [name, value] : std::get<Object>(value_)) {
        if (out.back() != '{') out += ',';
        write_text(out, name);
        out += ':';
        value.write(out);
      }
      out += '}';
    }
  }

  static void write_text(std::string& out, const std::string& text) {
    static const char* digits = "0123456789abcdef";
    out += '"';
    for (unsigned char c : text) {
      if (c == '"' || c == '\\') {
        (out += '\\') += static_cast<char>(c);
      } else if (c < ' ') {
        ((out += "\\u00") += digits[c / 16]) += digits[c % 16];
      } else {
        out += static_cast<char>(c);
      }
    }
    out += '"';
  }
};
