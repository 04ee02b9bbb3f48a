package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/webserver"
)

// roots returns the authorities for the service's certificate; nil: the machine's.
func (s *site) roots() *x509.CertPool {
	roots, err := webserver.Trust(s.config.CAFile)
	if err != nil {
		return nil // checkSettings reports it
	}
	return roots
}

// checkCertificate checks for how long the service's certificates are valid: the one in the file of
// the settings, and the one that the service shows.
func checkCertificate(ctx context.Context, s *site, r *report) {
	if file := s.config.TLSCert; file != "" {
		r.about = file
		text, err := os.ReadFile(file)
		block, _ := pem.Decode(text)
		if err != nil || block == nil {
			r.fault("it cannot be read as a certificate", "correct HOLDFAST_TLS_CERT")
		} else if cert, err := x509.ParseCertificate(block.Bytes); err != nil {
			r.fault(err.Error(), "correct HOLDFAST_TLS_CERT")
		} else {
			judgeCertificate(r, cert, s.now())
		}
	}
	for _, address := range []string{s.address, s.config.MailURL} {
		if !strings.HasPrefix(address, "https://") {
			continue
		}
		r.about = address
		cert, err := shownCertificate(ctx, address)
		if err != nil {
			r.skip("it shows none: %s", err)
			continue
		}
		judgeCertificate(r, cert, s.now())
	}
}

func judgeCertificate(r *report, cert *x509.Certificate, now time.Time) {
	const fix = "renew it; the service reads a renewed file by itself"
	end := cert.NotAfter.UTC().Format(time.DateOnly)
	switch left := cert.NotAfter.Sub(now); {
	case left <= 0:
		r.fault("it expired on "+end, fix)
	case now.Before(cert.NotBefore):
		r.fault("it is valid only from "+cert.NotBefore.UTC().Format(time.RFC3339), "set the clock of this machine, or renew the certificate")
	case left < expiresSoon:
		r.warn("it expires on "+end, fix)
	default:
		r.ok("valid until %s", end)
	}
}

// checkDisk checks the room of the folders that no other check looks at.
func checkDisk(_ context.Context, s *site, r *report) {
	folders := []string{s.config.TempDir, s.config.ACMECache}
	if path, ok := strings.CutPrefix(s.database(), "sqlite:"); ok {
		folders = append(folders, filepath.Dir(path))
	}
	if s.config.TempDir == "" && s.role != roleUp {
		folders = append(folders, os.TempDir())
	}
	for _, folder := range folders {
		if folder == "" {
			continue
		}
		own := &report{about: folder}
		var st unix.Statfs_t
		if err := unix.Statfs(folder, &st); err != nil {
			own.fault(err.Error(), "make the folder, or correct the setting")
		} else {
			total := int64(st.Blocks) * int64(st.Bsize)                                          //nolint:unconvert // the types differ between systems
			space := storage.Space{Total: total, Used: total - int64(st.Bavail)*int64(st.Bsize)} //nolint:unconvert // likewise
			judgeRoom(own, space)
			if unix.Access(folder, unix.W_OK) != nil {
				own.fault("this process may not write to it", "give its user the permission")
			}
			if len(own.list) == 0 {
				own.ok("%.1f %% free", float64(space.Total-space.Used)/float64(max(space.Total, 1))*roomPercent)
			}
		}
		r.list = append(r.list, own.list...)
	}
}

// othersMask are the permissions that make a secret file readable or writable for others.
const othersMask fs.FileMode = 0o077

// checkFiles checks the permissions of files with secrets.
func checkFiles(_ context.Context, s *site, r *report) {
	files := []string{s.config.ConfigFile, s.config.TLSKey}
	if s.role == roleUp {
		for _, name := range []string{node.ClientFile, node.KeyFile, node.ReceiptKeyFile} {
			files = append(files, filepath.Join(s.dir, name))
		}
	}
	if path, ok := strings.CutPrefix(s.database(), "sqlite:"); ok {
		files = append(files, path)
	}
	looked := 0
	for _, name := range files {
		if name == "" {
			continue
		}
		r.about = name
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // other checks miss what must be there
		case err != nil:
			r.fault(err.Error(), "give this process's user the permission to read it")
		case info.Mode().Perm()&othersMask != 0:
			r.warn(fmt.Sprintf("it has secrets, and other users of this machine can access it (%s)", info.Mode().Perm()), "chmod go= "+node.ShellWord(name))
		}
		looked++
	}
	if looked > 0 && len(r.list) == 0 {
		r.about = ""
		r.ok("%s with secrets, private", terminal.Plural(int64(looked), "file", "files"))
	}
}
