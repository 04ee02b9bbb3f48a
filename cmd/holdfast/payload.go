package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	open   func(ctx context.Context) (io.ReadCloser, error)
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
		return filePayload(arg, typ, info.Size())
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

func filePayload(path string, typ registry.PayloadType, size int64) (*payload, error) {
	// Opened now, so that what cannot be read is refused before anything is sent.
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("submit %s: %w", path, cause(err))
	}
	return &payload{
		name: filepath.Base(path), typ: typ, size: size, release: file.Close,
		open: func(context.Context) (io.ReadCloser, error) {
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			return io.NopCloser(file), nil
		},
	}, nil
}

func folderPayload(path string, typ registry.PayloadType) (*payload, error) {
	if !slices.Contains([]registry.PayloadType{registry.AutoType, registry.ContainerType, registry.BagType}, typ) {
		return nil, fix(&usageError{fmt.Errorf("submit %s: a folder cannot be of type %s", path, typ)},
			"use --type container or bag, or name the file itself")
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
	return &payload{
		name: name + ".tar", typ: typ, folder: true, size: folder.size, release: folder.Close,
		open: func(ctx context.Context) (io.ReadCloser, error) { return folder.reader(ctx), nil },
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
	names := make([]string, 0, len(registry.PayloadTypes()))
	for _, t := range registry.PayloadTypes() {
		if strings.EqualFold(string(t), text) {
			return t, nil
		}
		names = append(names, string(t))
	}
	return "", &usageError{errors.New("--type " + text + ": it must be one of " + strings.Join(names, ", "))}
}
