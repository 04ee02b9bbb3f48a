package dir

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// tokenVersion starts every token, to distinguish later formats.
const tokenVersion = "dir1"

// token names the bytes of a checkpoint. They are in pending/KEY/BASE, or at KEY itself after that
// was committed; the identity proves that.
type token struct {
	key, base string
	id        identity
}

// String returns the form in a Checkpoint. The key is encoded because JSON would change invalid
// UTF-8.
func (t token) String() string {
	return strings.Join([]string{
		tokenVersion, base64.RawURLEncoding.EncodeToString([]byte(t.key)), t.base,
		strconv.FormatUint(t.id.ino, 36), strconv.FormatInt(t.id.born, 36),
	}, ".")
}

// errToken says that a checkpoint is not from this driver, so its bytes are not here.
var errToken = fmt.Errorf("not a checkpoint of a directory: %w", storage.ErrNotFound)

// parseToken is the inverse of String.
func parseToken(text string) (token, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 5 || parts[0] != tokenVersion {
		return token{}, errToken
	}
	key, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return token{}, fmt.Errorf("%w: %w", errToken, err)
	}
	t := token{key: string(key), base: parts[2]}
	if err := storage.CheckKey(t.base); err != nil || strings.Contains(t.base, "/") {
		return token{}, errToken
	}
	ino, errIno := strconv.ParseUint(parts[3], 36, 64)
	born, errBorn := strconv.ParseInt(parts[4], 36, 64)
	if err := errors.Join(errIno, errBorn); err != nil {
		return token{}, fmt.Errorf("%w: %w", errToken, err)
	}
	t.id = identity{ino: ino, born: born}
	return t, nil
}

// openCheckpoint opens the file whose first cp.Size bytes cp names. It returns storage.ErrNotFound
// if they are gone.
func (s *Store) openCheckpoint(cp storage.Checkpoint) (*os.File, error) {
	t, err := parseToken(cp.Token)
	if err != nil {
		return nil, err
	}
	if s.check(t.key) != nil {
		return nil, errToken
	}
	for _, name := range []string{s.pendingPath(t.key) + "/" + t.base, t.key} {
		f, info, err := s.openRegular(name)
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, wrap("open checkpoint", t.key, err)
		}
		id, err := identify(f)
		// A scratch name is never reused for another file, but an object's key may be.
		if err == nil && (name != t.key || id.same(t.id)) && cp.Size >= 0 && info.Size() >= cp.Size {
			return f, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, wrap("open checkpoint", t.key, err)
		}
	}
	return nil, fmt.Errorf("checkpoint of %q: %w", t.key, storage.ErrNotFound)
}
