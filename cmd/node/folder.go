package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/web/signin"
)

var (
	// ErrInUse says that another process runs on the folder or the SQLite file.
	ErrInUse = errors.New("another holdfast is running on this")
	// ErrFolder says that the folder cannot be made or written.
	ErrFolder = errors.New("data folder cannot be used")
)

// ClientFile is the name of the file in the folder by which client commands find the running
// process.
const ClientFile = "client.json"

// Client is the content of ClientFile.
type Client struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	CA    string `json:"ca,omitempty"` // a PEM file of authorities to trust besides the machine's
}

// folder is the locked data folder.
type folder struct {
	path string
	lock *os.File
}

// openFolder makes the folder if it is missing, and takes its lock, which the kernel releases when
// the process ends.
func openFolder(path string) (*folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	lock, err := TakeLock(filepath.Join(path, "lock"))
	if errors.Is(err, ErrInUse) {
		return nil, fmt.Errorf("%s: %w", path, err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return &folder{path: path, lock: lock}, nil
}

// tempFolder is the name of the folder of temporary files.
const tempFolder = "temp"

// temporary makes the folder of temporary files, on the volume of staging, where they count as used
// room.
func (f *folder) temporary() (string, error) {
	path := filepath.Join(f.path, tempFolder)
	if err := os.MkdirAll(path, privateFolder); err != nil {
		return "", fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return filepath.Abs(path)
}

// TakeLock locks a file until it is closed or the process ends. It makes a missing file. The error is
// [ErrInUse] if another process has the lock.
func TakeLock(name string) (*os.File, error) {
	lock, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// tighten removes other users' permissions from the folder and the secrets in it. It leaves
// preserved files alone: their keeper may let others read them.
func (f *folder) tighten(ctx context.Context, log *slog.Logger) {
	tighten(ctx, log, f.path, privateFolder)
	tighten(ctx, log, filepath.Join(f.path, tempFolder), privateFolder)
	for _, name := range []string{"lock", KeyFile, ReceiptKeyFile, ClientFile} {
		tighten(ctx, log, filepath.Join(f.path, name), privateFile)
	}
}

// Close releases the lock.
func (f *folder) Close() error { return f.lock.Close() }

// KeyFile is the name of the file in the folder with the key that encrypts credentials.
const KeyFile = "secret.key"

// keys returns the keys in texts, then the folder's own, which decrypts earlier credentials. If
// there is none at all, it makes the folder's key, whole or not at all.
func (f *folder) keys(texts string) (*secret.Keys, error) {
	name := filepath.Join(f.path, KeyFile)
	own, err := os.ReadFile(name)
	switch {
	case errors.Is(err, os.ErrNotExist) && texts == "":
		own = []byte(rand.Text() + rand.Text() + "\n") // 260 bits
		if err := WriteFile(name, own, privateFile); err != nil {
			return nil, err
		}
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	keys, err := secret.Parse(texts + "," + string(own))
	if err == nil && keys == nil {
		err = errors.New("the file is empty; put the key back, or remove it and set the credentials again")
	}
	if err != nil {
		return nil, fmt.Errorf("read HOLDFAST_SECRET_KEY and %s: %w", name, err)
	}
	return keys, nil
}

// ReceiptKeyFile is the name of the file in the folder with the key that signs receipts.
const ReceiptKeyFile = "receipt.key"

// receiptKey returns the folder's key for receipts. It makes a missing one, whole or not at all.
func (f *folder) receiptKey() (*receipt.Key, error) {
	name := filepath.Join(f.path, ReceiptKeyFile)
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		text = []byte(receipt.NewKey() + "\n")
		if err := WriteFile(name, text, privateFile); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	key, err := receipt.ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; put the key back, or remove the file: a new key is made then, and earlier receipts stay valid", name, err)
	}
	return key, nil
}

// client writes the client file and returns its admin token. It reuses the last run's token while
// the Registry knows it, so that tokens do not pile up.
func (f *folder) client(ctx context.Context, r registry.TokenKeeper, c Client) (string, error) {
	name := filepath.Join(f.path, ClientFile)
	var last Client
	if raw, err := os.ReadFile(name); err == nil && json.Unmarshal(raw, &last) == nil {
		switch _, err := r.TokenByHash(ctx, signin.Hash(last.Token)); {
		case err == nil:
			c.Token = last.Token
		case !errors.Is(err, registry.ErrNotFound):
			return "", err
		}
	}
	if c.Token == "" {
		c.Token = signin.NewSecret()
		if err := addToken(ctx, r, c.Token); err != nil {
			return "", err
		}
	}
	return c.Token, write(name, c)
}

// addToken makes an admin token. If the name is taken, by a token whose client file was lost, it
// appends the id.
func addToken(ctx context.Context, r registry.TokenKeeper, secret string) error {
	const name = "holdfast up"
	tok := registry.Token{ID: rand.Text(), Hash: signin.Hash(secret), Name: name, Role: registry.RoleAdmin, CreatedBy: "holdfast"}
	err := r.AddToken(ctx, tok)
	if errors.Is(err, registry.ErrNameTaken) {
		tok.Name = name + " " + tok.ID
		err = r.AddToken(ctx, tok)
	}
	return err
}

// write replaces a file with v as JSON.
func write(name string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return WriteFile(name, append(raw, '\n'), privateFile)
}

// WriteFile replaces a file as a whole, with these permissions. It is synced when WriteFile returns.
func WriteFile(name string, text []byte, mode fs.FileMode) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", name, err)
		}
	}()
	tmp := name + ".new"
	file, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, name); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
