package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
)

// payload is one thing to submit: a URL, or bytes that are sent first.
type payload struct {
	name   string               // for people, and the upload's file name
	typ    registry.PayloadType // as it was given, or as a folder's content says
	url    string               // of what is fetched by the service; "" for what is sent
	folder bool
	size   int64 // bytes to send
	// modified is when a file was last changed; nil of all else.
	modified *time.Time
	// print tells the payload from others of its name and size, as well as can be told without reading it.
	print string
	open  func(ctx context.Context, offset int64) (io.ReadCloser, error)
	// release lets go what the payload holds; never nil.
	release func() error
}

func nothing() error { return nil }

// payloadOf looks at what is to be submitted, without sending anything: an address, a file or a folder.
func payloadOf(arg string, typ registry.PayloadType) (*payload, error) {
	if isAddress(arg) {
		return &payload{name: shown(arg), typ: typ, url: arg, release: nothing}, nil
	}
	info, err := os.Stat(arg)
	if err != nil {
		return nil, fmt.Errorf("submit %s: %w", arg, cause(err))
	}
	switch {
	case info.IsDir():
		return folderPayload(arg, typ)
	case info.Mode().IsRegular():
		return filePayload(arg, typ, info)
	}
	return nil, fix(fmt.Errorf("submit %s: %w", arg, errNotAFile), "copy its content into a file and submit that")
}

// cause is an error of the file system without the call and the path, for sentences that name the path themselves.
func cause(err error) error {
	if p := new(fs.PathError); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// shown is a payload as messages name it: as it was given, but for what must not stand there. The service refuses the address.
func shown(arg string) string {
	if u, err := url.Parse(arg); isAddress(arg) && (err != nil || u.User != nil) {
		return source.Redact(arg)
	}
	return arg
}

// isAddress says whether arg is an address, rather than a path. Whether it is one that can be fetched is for the service
// to say.
func isAddress(arg string) bool {
	scheme, _, found := strings.Cut(arg, "://")
	return found && scheme != "" && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+.-") == ""
}

func filePayload(path string, typ registry.PayloadType, info fs.FileInfo) (*payload, error) {
	// Opened now, so that what cannot be read is refused before anything is sent.
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("submit %s: %w", path, cause(err))
	}
	print, err := fingerprint(path, func(add func(string, int64, time.Time)) { add("", info.Size(), info.ModTime()) })
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	modified := info.ModTime()
	return &payload{
		name: filepath.Base(path), typ: typ, size: info.Size(), modified: &modified, print: print, release: file.Close,
		open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(file, offset, math.MaxInt64-offset)), nil
		},
	}, nil
}

// fingerprint is a digest of where something lies and of the names, sizes and times of what is in it.
func fingerprint(path string, each func(add func(name string, size int64, modified time.Time))) (string, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("submit %s: %w", path, err)
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("ask for this machine's name: %w", err)
	}
	h := sha256.New()
	h.Write(fmt.Appendf(nil, "%q %q\n", host, full))
	each(func(name string, size int64, modified time.Time) {
		h.Write(fmt.Appendf(nil, "%q %d %d\n", name, size, modified.UnixNano()))
	})
	return hex.EncodeToString(h.Sum(nil)), nil
}

func folderPayload(path string, typ registry.PayloadType) (*payload, error) {
	if err := checkFolderType(typ); err != nil {
		return nil, fmt.Errorf("submit %s: %w", path, err)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("submit %s: %w", path, err)
	}
	folder, err := openFolder(path)
	if err != nil {
		return nil, fmt.Errorf("submit %w", err)
	}
	if typ == registry.AutoType {
		typ = registry.ContainerType
		if folder.bag() {
			typ = registry.BagType
		}
	}
	name := filepath.Base(full)
	if name == string(filepath.Separator) {
		name = "root"
	}
	print, err := fingerprint(path, func(add func(string, int64, time.Time)) {
		for _, e := range folder.entries {
			add(e.name, e.size, e.modified)
		}
	})
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return &payload{
		name: name + ".tar", typ: typ, folder: true, size: folder.size, print: print, release: folder.Close,
		open: func(ctx context.Context, offset int64) (io.ReadCloser, error) { return folder.readerAt(ctx, offset) },
	}, nil
}

// digestOf reads ALG:HEX.
func digestOf(text string) (*registry.Digest, error) {
	if text == "" {
		return nil, nil
	}
	algorithm, value, found := strings.Cut(text, ":")
	algorithm = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(algorithm)), "-", "")
	value = strings.ToLower(strings.TrimSpace(value))
	if !found || algorithm == "" || value == "" || strings.Trim(value, "0123456789abcdef") != "" {
		return nil, &usageError{fmt.Errorf("--digest %q: it must be ALG:HEX, such as md5:0cc175b9c0f1b6a831c399e269772661", text)}
	}
	return &registry.Digest{Algorithm: algorithm, Value: value}, nil
}

// typeOf reads a payload type.
func typeOf(text string) (registry.PayloadType, error) {
	t, err := intake.ParseType(text)
	if err != nil {
		return t, &usageError{fmt.Errorf("--type %s: %w", text, err)}
	}
	return t, nil
}

// checkFolderType refuses what a folder cannot be.
func checkFolderType(t registry.PayloadType) error {
	if slices.Contains([]registry.PayloadType{registry.AutoType, registry.ContainerType, registry.BagType}, t) {
		return nil
	}
	return fix(&usageError{fmt.Errorf("a folder cannot be of type %s", t)}, "use --type container or bag, or name the file itself")
}
