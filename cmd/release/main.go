// Command release makes the files of a release: an archive for each platform, what is in each program
// (SBOM), digests, and the notes from CHANGELOG.md. It publishes nothing. The same commit and the
// same version of Go give the same bytes. docs/contributing.md says how to release.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: release VERSION FOLDER")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := release(ctx, os.Args[1], os.Args[2])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// platform is a system and a processor, as Go names them.
type platform struct{ os, arch string }

// platforms are those that a release is made for.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// versions are the names of releases.
var versions = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$`)

// release makes a version's files in a folder that is absent or empty. It works in the folder of the
// module.
func release(ctx context.Context, version, folder string) error {
	if !versions.MatchString(version) {
		return fmt.Errorf("%q is no version such as v0.9.0", version)
	}
	changes, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return fmt.Errorf("read the changes: %w", err)
	}
	notes, err := notesOf(string(changes), version)
	if err != nil {
		return fmt.Errorf("CHANGELOG.md: %w", err)
	}
	commit, at, err := commitOf(ctx, version)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // everybody may read a release
		return fmt.Errorf("make the folder: %w", err)
	}
	if there, err := os.ReadDir(folder); err != nil || len(there) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty", folder))
	}
	work, err := os.MkdirTemp("", "holdfast-release-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // a temporary folder
	common, err := commonFiles(ctx, version, work)
	if err != nil {
		return err
	}
	made := map[string][]byte{"NOTES.md": []byte(notes)}
	for _, p := range platforms {
		name := fmt.Sprintf("holdfast-%s-%s-%s", version, p.os, p.arch)
		binary := filepath.Join(work, name)
		if err := build(ctx, version, p, binary); err != nil {
			return err
		}
		program, err := os.ReadFile(binary)
		if err != nil {
			return fmt.Errorf("read the program: %w", err)
		}
		bill, err := billOf(binary, version, commit, at)
		if err != nil {
			return err
		}
		files := append([]file{{"holdfast", program, 0o755}, {"sbom.cdx.json", bill, 0o644}}, common...)
		var archive bytes.Buffer
		if err := pack(&archive, name, files, at); err != nil {
			return err
		}
		made[name+".tar.gz"], made[name+".cdx.json"] = archive.Bytes(), bill
	}
	made["SHA256SUMS"] = sums(made)
	for name, content := range made {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil { //nolint:gosec // everybody may read a release
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	fmt.Printf("%s of commit %s is in %s. To publish it:\n\n\tgit tag -a %s -F %s/NOTES.md --cleanup=verbatim %s && git push origin %s\n", version, commit, folder, version, folder, commit, version)
	return nil
}

// commitOf returns the commit that is released, and its time. The tree must be clean. A tag of this
// name must be at this commit, if there is one.
func commitOf(ctx context.Context, version string) (commit string, at time.Time, err error) {
	changed, err := git(ctx, "status", "--porcelain")
	if err != nil {
		return "", at, err
	}
	if changed != "" {
		return "", at, fmt.Errorf("the tree is not clean; commit these first, or put them away:\n%s", changed)
	}
	commit, err = git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return "", at, err
	}
	if tagged, err := git(ctx, "rev-parse", "--quiet", "--verify", "refs/tags/"+version+"^{commit}"); err == nil && tagged != commit {
		return "", at, fmt.Errorf("%s is a tag already, of commit %s", version, tagged)
	}
	text, err := git(ctx, "log", "-1", "--format=%ct")
	if err != nil {
		return "", at, err
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", at, fmt.Errorf("read the commit's time: %w", err)
	}
	return commit, time.Unix(seconds, 0).UTC(), nil
}

func git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// build builds the program for a platform. Nothing of this machine is in it: no path, no time.
func build(ctx context.Context, version string, p platform, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+version, "-o", binary, "./cmd/holdfast")
	cmd.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s/%s: %w\n%s", p.os, p.arch, err, out)
	}
	return nil
}

// copied are the files of the module that each archive has, by their patterns.
var copied = []string{"README.md", "CHANGELOG.md", "docs/*.md", "docs/openapi.json", "deploy/systemd/*", "deploy/prometheus/*.yaml", "deploy/prometheus/*.json"}

// completions are the places of completions below a prefix such as /usr/local, by shell.
var completions = map[string]string{
	"bash": "share/bash-completion/completions/holdfast",
	"zsh":  "share/zsh/site-functions/_holdfast",
	"fish": "share/fish/vendor_completions.d/holdfast.fish",
}

// commonFiles returns what is the same for all platforms: documents, units, manual pages and
// completions. The program itself makes the last two, so it is built for this machine in work.
func commonFiles(ctx context.Context, version, work string) (files []file, err error) {
	binary, pages := filepath.Join(work, "holdfast"), filepath.Join(work, "man")
	if err := build(ctx, version, platform{runtime.GOOS, runtime.GOARCH}, binary); err != nil {
		return nil, err
	}
	if err := os.Mkdir(pages, 0o700); err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	if out, err := exec.CommandContext(ctx, binary, "man", pages).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("write manual pages: %w\n%s", err, out)
	}
	for shell, place := range completions {
		script, err := exec.CommandContext(ctx, binary, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("write the completion of %s: %w", shell, err)
		}
		files = append(files, file{place, script, 0o644})
	}
	add := func(pattern string, place func(found string) string) error {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			return errors.Join(err, fmt.Errorf("there is no %s", pattern))
		}
		for _, name := range found {
			content, err := os.ReadFile(name)
			if err != nil {
				return fmt.Errorf("read a file of the release: %w", err)
			}
			files = append(files, file{place(name), content, 0o644})
		}
		return nil
	}
	for _, pattern := range copied {
		if err := add(pattern, filepath.ToSlash); err != nil {
			return nil, err
		}
	}
	return files, add(filepath.Join(pages, "*.1"), func(found string) string { return "share/man/man1/" + filepath.Base(found) })
}

// sums returns the digests of files, as sha256sum prints them.
func sums(made map[string][]byte) []byte {
	var b bytes.Buffer
	for _, name := range sorted(made) {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(made[name]), name)
	}
	return b.Bytes()
}
