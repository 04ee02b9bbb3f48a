package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// command runs a program and returns how long it took.
func command(ctx context.Context, name string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // curl and sync
	var said bytes.Buffer
	cmd.Stderr = &said
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", name, err, said.Bytes())
	}
	return time.Since(begun), nil
}

// curlGet is `curl -o FILE`.
func curlGet(ctx context.Context, url, name string) (time.Duration, error) {
	return command(ctx, "curl", "--silent", "--show-error", "--fail", "--output", name, url)
}

// curlLarge is `curl -o FILE && sync`.
func curlLarge(ctx context.Context, url, name string) (time.Duration, error) {
	get, err := curlGet(ctx, url, name)
	if err != nil {
		return 0, err
	}
	sync, err := command(ctx, "sync")
	return get + sync, err
}

// curlConfig writes a config file with all files, to be stored in folder.
func curlConfig(name string, files []sample, folder string) error {
	var text strings.Builder
	for i, s := range files {
		fmt.Fprintf(&text, "url = %q\noutput = %q\n", s.url, filepath.Join(folder, strconv.Itoa(i)))
	}
	return os.WriteFile(name, []byte(text.String()), 0o600)
}

// curlSmall runs one `curl -Z`, optionally followed by `sync`.
func curlSmall(ctx context.Context, config, folder string, synced bool) (time.Duration, error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return 0, err
	}
	taken, err := command(ctx, "curl", "--silent", "--show-error", "--fail", "--parallel", "--parallel-max", strconv.Itoa(parallel),
		"--config", config)
	if err != nil || !synced {
		return taken, err
	}
	sync, err := command(ctx, "sync")
	return taken + sync, err
}
