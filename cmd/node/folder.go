package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
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
	// ErrInUse says that another process runs on the folder, or on the SQLite file.
	ErrInUse = errors.New("another holdfast is running on this")
	// ErrFolder says that the folder cannot be made or written.
	ErrFolder = errors.New("data folder cannot be used")
)

// ClientFile is the name, in the folder, of the file by which client commands find the running
// process.
const ClientFile = "client.json"

// Client is what a client command needs to know.
type Client struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	CA    string `json:"ca,omitempty"` // the PEM file whose certificates it is known by, beside the machine's authorities
}

// folder is the locked data folder.
type folder struct {
	path string
	lock *os.File
}

// openFolder makes the folder when it is missing and takes its lock, which the kernel gives back
// however we end.
func openFolder(path string) (*folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	lock, err := takeLock(filepath.Join(path, "lock"))
	if errors.Is(err, ErrInUse) {
		return nil, fmt.Errorf("%s: %w", path, err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return &folder{path: path, lock: lock}, nil
}

// tempFolder is the name, in the folder, of that of temporary files.
const tempFolder = "temp"

// temporary makes the folder of temporary files. It lies where staging does, so that what is in it
// counts as used there.
func (f *folder) temporary() (string, error) {
	path := filepath.Join(f.path, tempFolder)
	if err := os.MkdirAll(path, privateFolder); err != nil {
		return "", fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return filepath.Abs(path)
}

// takeLock takes a lock that the kernel gives back however we end. It returns ErrInUse when another
// process has it.
func takeLock(name string) (*os.File, error) {
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

// tighten takes from others what they may do with the folder and the secrets in it. What is
// preserved is not tightened by itself: whoever keeps it elsewhere, by a link, may let others read
// it.
func (f *folder) tighten(ctx context.Context, log *slog.Logger) {
	tighten(ctx, log, f.path, privateFolder)
	tighten(ctx, log, filepath.Join(f.path, tempFolder), privateFolder)
	for _, name := range []string{"lock", KeyFile, ReceiptKeyFile, ClientFile} {
		tighten(ctx, log, filepath.Join(f.path, name), privateFile)
	}
}

// Close gives the lock back.
func (f *folder) Close() error { return f.lock.Close() }

// KeyFile is the name, in the folder, of the file with the key that seals credentials.
const KeyFile = "secret.key"

// keys returns the keys of these texts, and after them the folder's own, which what it has sealed
// still needs. The folder gets one when there would be none. A kill leaves it with a whole key or
// without one.
func (f *folder) keys(texts string) (*secret.Keys, error) {
	name := filepath.Join(f.path, KeyFile)
	own, err := os.ReadFile(name)
	switch {
	case errors.Is(err, os.ErrNotExist) && texts == "":
		own = []byte(rand.Text() + rand.Text() + "\n") // 260 bits
		if err := writeFile(name, own); err != nil {
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

// ReceiptKeyFile is the name, in the folder, of the file with the key that signs receipts.
const ReceiptKeyFile = "receipt.key"

// receiptKey returns the folder's key for receipts, and makes one where there is none. A kill
// leaves it with a whole key or without one.
func (f *folder) receiptKey() (*receipt.Key, error) {
	name := filepath.Join(f.path, ReceiptKeyFile)
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		text = []byte(receipt.NewKey() + "\n")
		if err := writeFile(name, text); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	key, err := receipt.ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; put the key back, or remove the file: then a new one is made, and what the old one signed stays valid", name, err)
	}
	return key, nil
}

// client writes the client file for this run and returns its admin token: the one of the last run
// while the Registry still knows it, so that tokens do not pile up.
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
		c.Token = "hf_" + rand.Text()
		if err := addToken(ctx, r, c.Token); err != nil {
			return "", err
		}
	}
	return c.Token, write(name, c)
}

// addToken makes an admin token. When one was made before whose client file is lost, its name is
// not free any more.
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

// write replaces a file whole, readable by its owner only.
func write(name string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return writeFile(name, append(raw, '\n'))
}

// writeFile replaces a file whole, on the disk when it returns, readable by its owner only.
func writeFile(name string, text []byte) (err error) {
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
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
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
