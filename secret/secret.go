// Package secret encrypts secrets that are kept in a database. Only our processes have the key. The
// text is bound to what it is about, so nobody who has the database can read it, change it, or move
// it to another row.
//
// A key comes from a secret text by HKDF with SHA-256 (RFC 5869, no salt). It is expanded, not
// stretched, so the text must be random, such as the output of `openssl rand -base64 32`, and not a
// password. The cipher is AES-256-GCM (NIST SP 800-38D) with a random nonce of 96 bits, safe for
// 2^32 texts under one key, far more than a Registry has.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Shortest is the least number of characters of the text that a key is made of.
const Shortest = 32

var (
	// ErrNoKey answers Seal and Open of Keys without a key.
	ErrNoKey = errors.New("there is no key to seal secrets with")
	// ErrBroken says that sealed text was changed, is about something else, or was never sealed.
	ErrBroken = errors.New("the sealed text was changed, or belongs elsewhere")
)

// UnknownKeyError says that text was sealed under a key that is not among those given.
type UnknownKeyError struct {
	ID string // the key's
}

// Error names the key.
func (e *UnknownKeyError) Error() string {
	return "it is sealed under the key " + e.ID + ", which is not among those given"
}

// Keys seal under the first of them and open what any of them sealed, so that a new key is put
// before the old one and the old one taken away when nothing is sealed under it any more. The
// methods may be called concurrently. A nil *Keys has none.
type Keys struct {
	keys []key
}

// key is one key with its name.
type key struct {
	id   string
	aead cipher.AEAD
}

// What HKDF expands a text for. The name of a key tells nothing of the key.
const (
	forSealing = "holdfast seal v1: key"
	forNaming  = "holdfast seal v1: key id"
)

// Parse makes keys of texts separated by commas, the one that seals first. Spaces around them are
// left out, and so are empty ones; of no text it makes nil. The error tells which text is too short
// or there twice, and repeats none.
func Parse(texts string) (*Keys, error) {
	var k Keys
	place := 0
	for text := range strings.SplitSeq(texts, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		place++
		if len(text) < Shortest {
			return nil, fmt.Errorf("key %d has %d characters; it needs %d at least, and they must be random (openssl rand -base64 32)",
				place, len(text), Shortest)
		}
		made, err := newKey(text)
		if err != nil {
			return nil, fmt.Errorf("make key %d: %w", place, err)
		}
		if _, twice := k.find(made.id); twice {
			return nil, fmt.Errorf("key %d is given twice", place)
		}
		k.keys = append(k.keys, made)
	}
	if len(k.keys) == 0 {
		return nil, nil //nolint:nilnil // nil is Keys without a key
	}
	return &k, nil
}

func newKey(text string) (key, error) {
	const keyLength, idLength = 32, 6
	secret, err := hkdf.Key(sha256.New, []byte(text), nil, forSealing, keyLength)
	if err != nil {
		return key{}, err
	}
	id, err := hkdf.Key(sha256.New, []byte(text), nil, forNaming, idLength)
	if err != nil {
		return key{}, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return key{id: hex.EncodeToString(id), aead: aead}, err
}

func (k *Keys) find(id string) (key, bool) {
	if k == nil {
		return key{}, false
	}
	for _, have := range k.keys {
		if have.id == id {
			return have, true
		}
	}
	return key{}, false
}

// format begins sealed text: format.KEYID.BASE64URL.
const format = "hf1"

// Seal encrypts a secret and binds it to what it is about: Open needs the very same words in the
// same order. The same secret sealed twice gives different texts, of printable ASCII. ErrNoKey is
// the only error.
func (k *Keys) Seal(secret string, about ...string) (string, error) {
	if k == nil || len(k.keys) == 0 {
		return "", ErrNoKey
	}
	first := k.keys[0]
	sealed := first.aead.Seal(nil, nil, []byte(secret), bound(first.id, about))
	return format + "." + first.id + "." + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open returns the secret in a sealed text. ErrNoKey when there is no key at all, *UnknownKeyError
// when not the one that is needed, ErrBroken when the text is not one that was sealed about this.
func (k *Keys) Open(sealed string, about ...string) (string, error) {
	if k == nil || len(k.keys) == 0 {
		return "", ErrNoKey
	}
	id, text, ok := parse(sealed)
	if !ok {
		return "", ErrBroken
	}
	with, ok := k.find(id)
	if !ok {
		return "", &UnknownKeyError{ID: id}
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return "", ErrBroken
	}
	secret, err := with.aead.Open(nil, nil, raw, bound(id, about))
	if err != nil {
		return "", ErrBroken
	}
	return string(secret), nil
}

// KeyID names the key that a text was sealed under, "" when it is no sealed text. It needs no key
// and proves nothing.
func KeyID(sealed string) string {
	id, _, _ := parse(sealed)
	return id
}

func parse(sealed string) (id, text string, ok bool) {
	parts := strings.Split(sealed, ".")
	if len(parts) != 3 || parts[0] != format || parts[1] == "" {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// bound is the associated data: each word with its length, so that no two lists of words come to
// the same bytes.
func bound(id string, about []string) []byte {
	var out []byte
	for _, word := range append([]string{format, id}, about...) {
		out = binary.AppendUvarint(out, uint64(len(word)))
		out = append(out, word...)
	}
	return out
}
