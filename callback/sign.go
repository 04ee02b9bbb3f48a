package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed message (Standard Webhooks 1.0, standardwebhooks.com).
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// Key signs messages.
type Key []byte

// secretPrefix starts the text of a key; base64 follows (Standard Webhooks, "Signature scheme").
const secretPrefix = "whsec_"

// leastKey and mostKey bound the length of a key, in bytes.
const (
	leastKey = 24
	mostKey  = 64
)

// ErrKey says that a text is not a key.
var ErrKey = fmt.Errorf("a signing key is %s and the base64 of %d to %d random bytes (openssl rand -base64 32)", secretPrefix, leastKey, mostKey)

// ParseKey parses a key in the form of Standard Webhooks: whsec_ and the base64 of 24 to 64 bytes.
func ParseKey(text string) (Key, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < leastKey || len(key) > mostKey {
		return nil, ErrKey // the error does not repeat the text
	}
	return key, nil
}

// sign returns the signature of a message: v1, and the base64 of the HMAC-SHA256 of its id, time
// and body.
func (k Key) sign(m Message) string {
	h := hmac.New(sha256.New, k)
	h.Write(fmt.Appendf(nil, "%s.%d.", m.ID, m.At.Unix())) // writing to a hash never fails
	h.Write(m.Body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// Errors of [Verify].
var (
	ErrSignature = errors.New("no signature of the message matches a key")
	ErrTime      = errors.New("the time of the message is too far from now; it may be a replay")
)

// Verify verifies the headers and body of a received message and returns its id. It returns ErrTime
// if the message's time differs from now by more than tolerance, ErrSignature if no signature
// matches a key, and one of these for invalid headers.
func Verify(header func(string) string, body []byte, now time.Time, tolerance time.Duration, keys ...Key) (id string, err error) {
	seconds, err := strconv.ParseInt(header(headerTimestamp), 10, 64)
	at := time.Unix(seconds, 0)
	if err != nil || now.Sub(at).Abs() > tolerance {
		return "", ErrTime
	}
	m := Message{ID: header(headerID), At: at, Body: body}
	for have := range strings.FieldsSeq(header(headerSignature)) {
		for _, k := range keys {
			if hmac.Equal([]byte(have), []byte(k.sign(m))) {
				return m.ID, nil
			}
		}
	}
	return "", ErrSignature
}
